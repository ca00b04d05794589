// See step_cost.h.
#include "app/step_cost.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "app/memory_plan.h"

namespace headrace {
namespace {

/// Keys that a query sees at most, its own included.
int64_t visible(const CacheSpec& spec) {
  return spec.kind == CacheSpec::Kind::window ? spec.window : std::numeric_limits<int64_t>::max();
}

/// The sum of min(position + 1, most) over rows from `first` on.
double query_key_pairs(int64_t first, int64_t rows, int64_t most) {
  const int64_t growing = std::clamp<int64_t>(most - first, 0, rows);
  const double at_growth = static_cast<double>(growing) *
                           (static_cast<double>(first) + 0.5 * static_cast<double>(growing + 1));
  return at_growth + static_cast<double>(rows - growing) * static_cast<double>(most);
}

}  // namespace

StepCost::StepCost(const WeightWork& weights, std::vector<CacheSpec> caches, KvType kv_type,
                   int64_t attention_length)
    : weights_(weights),
      caches_(std::move(caches)),
      kv_type_(kv_type),
      attention_length_(attention_length) {}

Work StepCost::of(const StepShape& step) const {
  const auto sequences = static_cast<double>(step.num_sequences);
  Work work;
  work.bytes = weights_.step_layer_bytes(step.num_sequences * step.rows);
  work.macs = sequences * static_cast<double>(step.rows) * static_cast<double>(weights_.layer_macs);
  if (step.logit_rows > 0) {
    work.bytes +=
        static_cast<double>(step.logit_rows == 1 ? weights_.top_bytes : weights_.head_bytes);
    work.macs += static_cast<double>(step.logit_rows) * static_cast<double>(weights_.head_macs);
  }
  for (const CacheSpec& spec : caches_) {
    if (spec.kind == CacheSpec::Kind::none) continue;
    MemoryNeeds layer;
    layer.caches = {spec};
    layer.kv_type = kv_type_;
    const int64_t most = visible(spec);
    // A step's own keys are still in a cache.
    const auto keys = static_cast<double>(std::min(step.first_position, most - 1));
    work.bytes += sequences * keys * static_cast<double>(kv_bytes_per_token(layer));
    // Scores, then the sum of values.
    work.macs += 2 * sequences * static_cast<double>(attention_length_) *
                 query_key_pairs(step.first_position, step.rows, most);
  }
  return work;
}

}  // namespace headrace
