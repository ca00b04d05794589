// Checks of what a request asks for; see headrace/params.h.
#include "headrace/params.h"

#include <cmath>
#include <string>

namespace headrace {
namespace {

// Far more than any use; keeps logits finite.
constexpr float kMaxShift = 1e9F;
constexpr float kMaxRepetition = 1e3F;
constexpr float kMaxPace = 1e3F;  // of mirostat

std::string shown(double value) {
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

Result<void> check(bool ok, std::string_view name, std::string_view allowed, std::string found) {
  if (ok) return {};
  return Error{ErrorCode::out_of_range,
               "expected " + std::string(allowed) + ", found " + std::move(found),
               std::string(name), ""};
}

bool is_shift(float value) {
  return value >= -kMaxShift && value <= kMaxShift;
}

// Lists may have thousands: no text is made for those that are right.
Result<void> check_ids(std::string_view name, TokenId id, int64_t vocab_size) {
  if (id >= 0 && id < vocab_size) return {};
  return check(false, name, "token ids from 0 to " + std::to_string(vocab_size - 1),
               std::to_string(id));
}

Result<void> check_dry(const SamplingParams& params, int64_t vocab_size) {
  const float multiplier = params.dry_multiplier;
  HEADRACE_TRY(check(multiplier >= 0 && multiplier <= kMaxShift, "dry_multiplier",
                     "a number from 0 (off) to 1e9", shown(multiplier)));
  const float base = params.dry_base;
  HEADRACE_TRY(
      check(base >= 1 && base <= kMaxShift, "dry_base", "a number from 1 to 1e9", shown(base)));
  HEADRACE_TRY(check(params.dry_allowed_length >= 0, "dry_allowed_length", "0 or more",
                     std::to_string(params.dry_allowed_length)));
  HEADRACE_TRY(check(params.dry_penalty_last_n >= -1, "dry_penalty_last_n", "-1 (all) or more",
                     std::to_string(params.dry_penalty_last_n)));
  if (params.dry_breakers == nullptr) return {};
  TokenId last = -1;
  for (const TokenId id : *params.dry_breakers) {
    HEADRACE_TRY(check_ids("dry_breakers", id, vocab_size));
    if (id <= last) {
      return check(false, "dry_breakers", "token ids in ascending order",
                   std::to_string(id) + " after " + std::to_string(last));
    }
    last = id;
  }
  return {};
}

Result<void> check_xtc_and_mirostat(const SamplingParams& params) {
  const auto is_share = [](float value) { return value >= 0 && value <= 1; };
  HEADRACE_TRY(check(is_share(params.xtc_probability), "xtc_probability", "a number from 0 to 1",
                     shown(params.xtc_probability)));
  HEADRACE_TRY(check(is_share(params.xtc_threshold), "xtc_threshold", "a number from 0 to 1",
                     shown(params.xtc_threshold)));
  HEADRACE_TRY(check(params.mirostat >= 0 && params.mirostat <= 2, "mirostat", "0 (off), 1 or 2",
                     std::to_string(params.mirostat)));
  const auto is_pace = [](float value) { return value >= 0 && value <= kMaxPace; };
  HEADRACE_TRY(check(is_pace(params.mirostat_tau), "mirostat_tau", "a number from 0 to 1000",
                     shown(params.mirostat_tau)));
  return check(is_pace(params.mirostat_eta), "mirostat_eta", "a number from 0 to 1000",
               shown(params.mirostat_eta));
}

}  // namespace

Result<void> validate(const SamplingParams& sampling, const StopParams& stop, int64_t vocab_size) {
  for (const auto& [id, bias] : sampling.logit_bias) {
    HEADRACE_TRY(check_ids("logit_bias", id, vocab_size));
    if (is_shift(bias)) continue;
    HEADRACE_TRY(check(false, "logit_bias", "numbers from -1e9 to 1e9",
                       shown(bias) + " for token " + std::to_string(id)));
  }
  const float repetition = sampling.repetition_penalty;
  HEADRACE_TRY(check(repetition >= 1 / kMaxRepetition && repetition <= kMaxRepetition,
                     "repetition_penalty", "a number from 0.001 to 1000", shown(repetition)));
  const float presence = sampling.presence_penalty;
  HEADRACE_TRY(
      check(is_shift(presence), "presence_penalty", "a number from -1e9 to 1e9", shown(presence)));
  const float frequency = sampling.frequency_penalty;
  HEADRACE_TRY(check(is_shift(frequency), "frequency_penalty", "a number from -1e9 to 1e9",
                     shown(frequency)));
  HEADRACE_TRY(check(sampling.penalty_last_n >= -1, "penalty_last_n", "-1 (all) or more",
                     std::to_string(sampling.penalty_last_n)));
  const float temperature = sampling.temperature;
  HEADRACE_TRY(check(std::isfinite(temperature) && temperature >= 0, "temperature",
                     "a number of at least 0", shown(temperature)));
  HEADRACE_TRY(
      check(sampling.top_k >= 0, "top_k", "0 (all) or more", std::to_string(sampling.top_k)));
  const auto in_unit = [](float value) { return value > 0 && value <= 1; };
  HEADRACE_TRY(check(in_unit(sampling.typical_p), "typical_p", "a number above 0 and up to 1",
                     shown(sampling.typical_p)));
  HEADRACE_TRY(check(in_unit(sampling.top_p), "top_p", "a number above 0 and up to 1",
                     shown(sampling.top_p)));
  HEADRACE_TRY(check(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p", "a number from 0 to 1",
                     shown(sampling.min_p)));
  HEADRACE_TRY(check_dry(sampling, vocab_size));
  HEADRACE_TRY(check_xtc_and_mirostat(sampling));

  HEADRACE_TRY(check(stop.max_tokens >= -1, "max_tokens", "-1 (until the end) or more",
                     std::to_string(stop.max_tokens)));
  HEADRACE_TRY(
      check(stop.min_tokens >= 0, "min_tokens", "0 or more", std::to_string(stop.min_tokens)));
  if (stop.max_tokens >= 0) {
    HEADRACE_TRY(check(stop.min_tokens <= stop.max_tokens, "min_tokens",
                       "at most max_tokens (" + std::to_string(stop.max_tokens) + ")",
                       std::to_string(stop.min_tokens)));
  }
  for (const TokenId id : stop.stop_token_ids) {
    HEADRACE_TRY(check_ids("stop_token_ids", id, vocab_size));
  }
  return {};
}

}  // namespace headrace
