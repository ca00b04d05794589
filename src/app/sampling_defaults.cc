#include "app/sampling_defaults.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace headrace {

SamplingParams documented_sampling() {
  SamplingParams params;
  params.temperature = 0.8F;
  params.top_k = 40;
  params.top_p = 0.95F;
  params.min_p = 0.05F;
  return params;
}

SamplingParams sampling_defaults(const Metadata& metadata, std::vector<std::string>& warnings) {
  SamplingParams params = documented_sampling();
  // One key: read it, put it in, and take it out again if the parameters are no longer valid.
  const auto apply = [&](std::string_view name,
                         const std::function<void(SamplingParams&, double)>& set) {
    const std::string key = "general.sampling." + std::string(name);
    const auto value = metadata.get_float(key);
    if (!value.ok()) {
      warnings.push_back("ignored: " + value.error().to_string());
      return;
    }
    if (!value->has_value()) return;
    SamplingParams changed = params;
    set(changed, **value);
    const auto valid = validate(changed, StopParams{}, 1);
    if (!valid.ok()) {
      warnings.push_back("ignored: " + key + ": " + valid.error().to_string());
      return;
    }
    params = changed;
  };
  const auto integer = [](double value) {
    return value >= -1 && value <= 1e9 ? static_cast<int32_t>(value) : int32_t{-2};
  };
  apply("temp", [](SamplingParams& p, double v) { p.temperature = static_cast<float>(v); });
  apply("top_k", [&](SamplingParams& p, double v) { p.top_k = integer(v); });
  apply("top_p", [](SamplingParams& p, double v) { p.top_p = static_cast<float>(v); });
  apply("min_p", [](SamplingParams& p, double v) { p.min_p = static_cast<float>(v); });
  apply("penalty_repeat",
        [](SamplingParams& p, double v) { p.repetition_penalty = static_cast<float>(v); });
  apply("penalty_last_n", [&](SamplingParams& p, double v) { p.penalty_last_n = integer(v); });
  return params;
}

}  // namespace headrace
