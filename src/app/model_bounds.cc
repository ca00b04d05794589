// See model_bounds.h.
#include "app/model_bounds.h"

#include <algorithm>
#include <new>
#include <utility>

#include "app/open_model.h"
#include "base/os/system_limits.h"
#include "model/registry.h"

namespace headrace {
namespace {

/// Of reading, over all models.
constexpr double kBriefReadSeconds = 0.08;
/// Larger than the caches that a model's weights could stay in from one step to the next, and
/// written in some hundredths of a second.
constexpr uint64_t kMostBriefBytes = uint64_t{128} << 20;
/// Of what is free: KV caches are still to come.
constexpr uint64_t kPartOfFree = 8;

/// Positions that decoding is looked at; what a step costs is linear between windows' ends.
constexpr int64_t kMostLooks = 256;

StepCost cost_of(const OpenedModel& opened, const ModelConfig& config) {
  const auto specs = opened.model->cache_specs();
  return {opened.model->weight_work(),
          {specs.begin(), specs.end()},
          opened.kv_type,
          config.num_heads * config.head_dim};
}

/// Bytes that a step of decoding reads, with nothing behind it.
uint64_t step_bytes(const StepCost& cost) {
  return static_cast<uint64_t>(cost.of({.first_position = 0}).bytes);
}

}  // namespace

ModelBounds::ModelBounds(const WeightWork& weights, StepCost cost, const MachineLimits& limits,
                         int64_t chunk_tokens)
    : weights_(weights),
      cost_(std::move(cost)),
      limits_(limits),
      chunk_tokens_(std::max<int64_t>(chunk_tokens, 1)) {}

BoundTime ModelBounds::time_of(const StepShape& step) const {
  const Work work = cost_.of(step);
  const double read = limits_.read_seconds(work);
  const double compute = limits_.compute_seconds(work);
  return {std::max(read, compute), compute > read};
}

BoundTime ModelBounds::decode_time(int64_t first_position, int64_t num_steps) const {
  BoundTime sum;
  double by_compute = 0;
  const int64_t num_looks = std::min(num_steps, kMostLooks);
  for (int64_t i = 0; i < num_looks; ++i) {
    const int64_t begin = i * num_steps / num_looks;
    const int64_t end = (i + 1) * num_steps / num_looks;
    const BoundTime one = time_of({.first_position = first_position + (begin + end - 1) / 2});
    const double seconds = one.seconds * static_cast<double>(end - begin);
    sum.seconds += seconds;
    if (one.is_by_compute) by_compute += seconds;
  }
  sum.is_by_compute = by_compute > 0.5 * sum.seconds;
  return sum;
}

BoundTime ModelBounds::prefill_time(int64_t first_position, int64_t rows) const {
  BoundTime sum;
  double by_compute = 0;
  for (int64_t done = 0; done < rows; done += chunk_tokens_) {
    const int64_t now = std::min(chunk_tokens_, rows - done);
    const BoundTime one = time_of({.rows = now,
                                   .first_position = first_position + done,
                                   .logit_rows = done + now == rows ? 1 : 0});
    sum.seconds += one.seconds;
    if (one.is_by_compute) by_compute += one.seconds;
  }
  sum.is_by_compute = by_compute > 0.5 * sum.seconds;
  return sum;
}

double ModelBounds::decode_tokens_per_second(int64_t num_sequences, int64_t position) const {
  const int64_t num = std::max<int64_t>(num_sequences, 1);
  const BoundTime step =
      time_of({.num_sequences = num, .first_position = position, .logit_rows = num});
  return static_cast<double>(num) / step.seconds;
}

double ModelBounds::prefill_tokens_per_second() const {
  return static_cast<double>(chunk_tokens_) / prefill_time(0, chunk_tokens_).seconds;
}

double ModelBounds::bytes_of(const DecodeWork& work) const {
  const auto times = [](int64_t num, uint64_t bytes) {
    return static_cast<double>(num) * static_cast<double>(bytes);
  };
  return times(work.num_steps, weights_.layer_bytes) +
         times(work.num_steps - work.num_top_steps, weights_.head_bytes) +
         times(work.num_top_steps, weights_.top_bytes) + static_cast<double>(work.kv_bytes);
}

double ModelBounds::fraction_of_bandwidth(const DecodeWork& work) const {
  if (work.ns <= 0) return 0;
  const double seconds = 1e-9 * static_cast<double>(work.ns);
  return bytes_of(work) / seconds / limits_.read_bytes_per_second;
}

std::vector<std::shared_ptr<const ModelBounds>> measure_bounds(
    std::span<const std::unique_ptr<OpenedModel>> models) {
  std::vector<std::shared_ptr<const ModelBounds>> out(models.size());
  // They compute on one pool, with the same kernels.
  MachineLimits limits;
  const uint64_t most_bytes = std::min(kMostBriefBytes, memory_available_bytes() / kPartOfFree);
  for (size_t i = 0; i < models.size(); ++i) {
    const OpenedModel& opened = *models[i];
    const auto recognized = recognize(*opened.checkpoint);
    if (!recognized.ok() || recognized->config.is_encoder) continue;  // of these none decodes
    StepCost cost = cost_of(opened, recognized->config);
    if (limits.macs_per_second <= 0) limits.macs_per_second = opened.backend->measure_peak_macs();
    try {
      limits.read_bytes_per_second =
          opened.backend->measure_read_rate(std::min(step_bytes(cost), most_bytes),
                                            kBriefReadSeconds / static_cast<double>(models.size()));
    } catch (const std::bad_alloc&) {
      continue;
    }
    if (limits.macs_per_second <= 0 || limits.read_bytes_per_second <= 0) continue;
    out[i] = std::make_shared<const ModelBounds>(opened.model->weight_work(), std::move(cost),
                                                 limits, opened.options.chunk_tokens);
  }
  return out;
}

}  // namespace headrace
