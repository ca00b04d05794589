// See response_json.h.
#include "api/response_json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace headrace::api {
namespace {

/// Three decimals; what was divided by nothing is 0.
double rounded(double value) {
  return std::isfinite(value) ? std::round(value * 1e3) / 1e3 : 0;
}

double per_second(int64_t count, double ms) {
  return ms > 0 ? 1e3 * static_cast<double>(count) / ms : 0;
}

}  // namespace

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

double short_number(float value) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  double out = 0;
  const auto read = std::from_chars(text, written.ptr, out);
  return read.ec == std::errc() && std::isfinite(out) ? out : 0;
}

std::string_view end_name(ChoiceEnd end) {
  HEADRACE_CHECK(end != ChoiceEnd::running);
  return end == ChoiceEnd::stop ? "stop" : "length";
}

Json stop_reason(const Choice& choice, const PreparedRequest& request) {
  if (choice.stop_string) return *choice.stop_string;
  for (const TokenId id : request.params.stop.stop_token_ids) {
    if (id == choice.stop_token) return id;
  }
  return nullptr;
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json timings_json(const AnswerTimes& times, int64_t cached_tokens,
                  std::optional<double> tokenize_ms) {
  Json out = {{"queue_ms", rounded(times.queue_ms)}};
  if (tokenize_ms) out["tokenize_ms"] = rounded(*tokenize_ms);
  out["prompt_n"] = times.prompt_n;
  out["prompt_ms"] = rounded(times.prompt_ms);
  out["prompt_per_second"] = rounded(per_second(times.prompt_n, times.prompt_ms));
  out["cache_n"] = cached_tokens;
  out["predicted_n"] = times.predicted_n;
  out["predicted_ms"] = rounded(times.predicted_ms);
  out["predicted_per_second"] = rounded(per_second(times.decoded_n, times.predicted_ms));
  out["sample_ms"] = rounded(times.sample_ms);
  return out;
}

Json timings_json(const RequestStats& stats) {
  AnswerTimes times;
  times.add(stats);
  times.prompt_n = stats.prompt_tokens - stats.cached_tokens;
  return timings_json(times, stats.cached_tokens, std::nullopt);
}

}  // namespace headrace::api
