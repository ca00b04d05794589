// See open_models.h.
#include "app/open_models.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "app/memory_plan.h"
#include "app/memory_shares.h"
#include "app/open_stages.h"
#include "base/saturating.h"

namespace headrace {
namespace {

OpenOptions options_of(const ModelSpec& spec, const OpenOptions& options) {
  OpenOptions out = options;
  out.name = spec.name;
  if (spec.context != 0) out.context = spec.context;
  if (!spec.chat_template.empty()) out.chat_template = spec.chat_template;
  return out;
}

Result<void> check_names(const std::vector<ModelOpening>& openings) {
  std::vector<std::string> names;
  for (const ModelOpening& opening : openings) {
    const std::string& name = opening.opened->options.name;
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return Error{ErrorCode::invalid_argument, "two models are called '" + name + "'", "",
                   "give them names of their own"};
    }
    names.push_back(name);
  }
  return {};
}

std::vector<MemoryClaim> claims_of(const std::vector<ModelOpening>& openings,
                                   const std::vector<ModelSpec>& specs) {
  std::vector<MemoryClaim> claims;
  for (size_t i = 0; i < openings.size(); ++i) {
    const MemoryNeeds& needs = openings[i].needs;
    // Packed weights may take a little more than their file says; a cache that was asked for must
    // not be the smaller for it.
    const uint64_t margin =
        specs[i].kv_bytes > 0 ? saturating_add(needs.weight_bytes, needs.adapter_bytes) / 16 : 0;
    claims.push_back({.name = openings[i].opened->options.name,
                      .fixed_bytes = saturating_add(total_bytes(needs, 0), margin),
                      .least_kv_bytes = kv_bytes(needs, 1),
                      .kv_bytes = specs[i].kv_bytes});
  }
  return claims;
}

Result<std::shared_ptr<ThreadPool>> start_pool(int num_threads, bool pin) {
  try {
    return std::make_shared<ThreadPool>(num_threads, pin);
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 "cannot start " + std::to_string(num_threads) + " threads: " + fault.what(), "",
                 "ask for fewer with -t"};
  }
}

/// Where packed weights took more than their file says and the margin, the cache is smaller.
void set_kv_bytes(OpenedModel& opened, uint64_t asked_bytes) {
  if (asked_bytes == 0) return;
  opened.kv_bytes = std::min(asked_bytes, opened.kv_budget_bytes);
  if (opened.kv_bytes == asked_bytes) return;
  opened.warnings.push_back("the KV cache has " + std::to_string(opened.kv_bytes >> 20) +
                            " MiB instead of " + std::to_string(asked_bytes >> 20) +
                            ": the weights take more than the file said");
}

}  // namespace

Result<OpenedModels> open_models(const std::vector<ModelSpec>& specs, const OpenOptions& options) {
  if (specs.empty()) return Error{ErrorCode::invalid_argument, "no model was given", "", ""};
  OpenedModels out;
  std::vector<std::string> warnings;
  HEADRACE_TRY(check_options(options));
  const int num_threads = threads_to_use(options.num_threads, warnings);
  HEADRACE_ASSIGN(out.pool, start_pool(num_threads, options.pin));
  if (specs.size() > 1) out.turns = std::make_shared<StepTurns>();
  std::vector<ModelOpening> openings;
  for (const ModelSpec& spec : specs) {
    OpenOptions own = options_of(spec, options);
    own.pool = out.pool;
    own.turns = out.turns;
    HEADRACE_ASSIGN(auto opening,
                    opening_errors(spec.path, own, [&] { return begin_opening(spec.path, own); }));
    openings.push_back(std::move(opening));
  }
  HEADRACE_TRY(check_names(openings));
  const auto claims = claims_of(openings, specs);
  HEADRACE_ASSIGN(const auto shares, divide_memory(claims, budget_bytes(memory_to_use(options))));
  for (size_t i = 0; i < specs.size(); ++i) {
    const uint64_t limit = limit_of_budget(claims[i].fixed_bytes + shares[i]);
    HEADRACE_ASSIGN(auto opened, opening_errors(specs[i].path, options, [&] {
                      return finish_opening(std::move(openings[i]), limit);
                    }));
    set_kv_bytes(*opened, specs[i].kv_bytes);
    out.models.push_back(std::move(opened));
  }
  auto& told = out.models.front()->warnings;
  told.insert(told.begin(), warnings.begin(), warnings.end());
  return out;
}

}  // namespace headrace
