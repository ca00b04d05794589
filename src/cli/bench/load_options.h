// The options of `headrace bench --load`, and the loads that they ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/load/load.h"
#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

/// As given. Lists are read by load_plans().
struct LoadArgs {
  bool is_on = false;
  std::optional<std::string> rates;
  std::vector<int64_t> concurrencies;
  std::optional<int64_t> requests;
  std::optional<double> seconds;
  std::optional<int64_t> warm_up;
  std::optional<std::string> inputs, outputs;
  std::vector<int64_t> prefix_tokens;
  std::optional<int64_t> prefixes;
  std::optional<int64_t> turns;
  std::optional<uint64_t> seed;
  std::optional<double> temperature;
  std::optional<std::string> slo;
  std::optional<std::string> kv_memory;
  bool no_prefix_cache = false;
  std::optional<int64_t> max_wait_ms;
  std::optional<double> max_slowdown;
  bool static_batching = false;
  bool no_ideal = false;
};

std::vector<Option> load_options(LoadArgs& args);

/// The first option that was given although it means something with --load only; "": none.
std::string first_load_option(const LoadArgs& args);

/// Every combination of what was asked for, in the order of a table. `max_sequences`: values of
/// -np; none: as many as ask at once. Errors (invalid_argument) with the option.
Result<std::vector<LoadPlan>> load_plans(const LoadArgs& args,
                                         const std::vector<int64_t>& max_sequences);

}  // namespace headrace::cli
