// See sampling_options.h.
#include "cli/sampling_options.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/read_number.h"
#include "cli/make_option.h"

namespace headrace::cli {
namespace {

constexpr const char* kSamplingGroup = "Sampling";

/// "ID=VALUE"; "ID+V" and "ID-V" are other programs' spellings and are not taken.
Result<std::pair<TokenId, float>> parse_bias(const std::string& text) {
  const Error wrong{ErrorCode::invalid_argument, "expected ID=VALUE, got '" + text + "'",
                    "--logit-bias", "for example --logit-bias 1234=-5"};
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return wrong;
  const std::string_view words = text;
  TokenId id = 0;
  if (read_number(words.substr(0, equals), id) != std::errc()) return wrong;
  std::string_view bias = words.substr(equals + 1);
  if (bias.starts_with('+')) bias.remove_prefix(1);
  float value = 0;
  if (read_number(bias, value) != std::errc()) return wrong;
  return std::pair<TokenId, float>{id, value};
}

/// The flag behind a parameter's name in the errors of validate(); the name itself if there is
/// none.
std::string flag_of(const std::string& parameter) {
  static constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
      {"temperature", "--temp"},
      {"top_k", "--top-k"},
      {"top_p", "--top-p"},
      {"min_p", "--min-p"},
      {"typical_p", "--typical-p"},
      {"repetition_penalty", "--repeat-penalty"},
      {"penalty_last_n", "--repeat-last-n"},
      {"presence_penalty", "--presence-penalty"},
      {"frequency_penalty", "--frequency-penalty"},
      {"logit_bias", "--logit-bias"},
      {"max_tokens", "-n"},
  };
  for (const auto& [name, flag] : kFlags) {
    if (name == parameter) return std::string(flag);
  }
  return parameter;
}

template <class To, class From>
void put(To& to, const std::optional<From>& from) {
  if (from) to = static_cast<To>(*from);
}

/// For counts: what does not fit becomes the largest, which validate() then judges.
void put_count(int32_t& to, const std::optional<int64_t>& from) {
  if (!from) return;
  to = static_cast<int32_t>(
      std::min<int64_t>(std::max<int64_t>(*from, std::numeric_limits<int32_t>::min()),
                        std::numeric_limits<int32_t>::max()));
}

}  // namespace

void add_sampling_options(std::vector<Option>& options, SamplingArgs& args) {
  const auto by_file = [](const char* number) {
    return "the model file's, else " + std::string(number);
  };
  const auto add = [&](const char* names, const char* value, const char* help, OptionTarget target,
                       const std::string& default_text) {
    options.push_back(make_option(names, value, help, target, default_text));
    options.back().group = kSamplingGroup;
  };
  add("-n,--n-predict,--max-tokens", "N", "Generate at most N tokens", &args.max_tokens,
      "until the model ends or the context is full");
  add("--temp,--temperature", "T", "Temperature; 0 always takes the most likely token",
      &args.temperature, by_file("0.8"));
  add("--top-k", "K", "Keep the K most likely tokens; 0 keeps all", &args.top_k, by_file("40"));
  add("--top-p", "P", "Keep the most likely tokens that together reach probability P", &args.top_p,
      by_file("0.95"));
  add("--min-p", "P", "Drop tokens below P times the most likely one's probability", &args.min_p,
      by_file("0.05"));
  add("--typical-p", "P", "Keep the most typical tokens that together reach probability P",
      &args.typical_p, "1, which keeps all");
  add("--repeat-penalty", "X", "Divide the logits of tokens seen before by X", &args.repeat_penalty,
      by_file("1, which does nothing"));
  add("--repeat-last-n", "N", "Tokens that the penalties look back; -1 is all", &args.repeat_last_n,
      by_file("-1"));
  add("--presence-penalty", "X", "Subtract X from the logits of tokens generated before",
      &args.presence_penalty, "0");
  add("--frequency-penalty", "X", "Subtract X for each time a token was generated before",
      &args.frequency_penalty, "0");
  add("--logit-bias", "ID=V", "Add V to the logit of token ID; may be given several times",
      &args.logit_bias, "");
  add("-s,--seed", "S", "Seed; the same seed gives the same text", &args.seed, "a fresh one");
  add("--ignore-eos", "", "Go on after the model's end token", &args.ignore_eos, "");
}

Result<void> check_sampling(const SamplingArgs& args) {
  HEADRACE_TRY(sampling_of(args, SamplingParams{}, std::numeric_limits<TokenId>::max()));
  return {};
}

Result<SamplingParams> sampling_of(const SamplingArgs& args, SamplingParams defaults,
                                   int64_t vocab_size) {
  SamplingParams params = std::move(defaults);
  put(params.temperature, args.temperature);
  put_count(params.top_k, args.top_k);
  put(params.top_p, args.top_p);
  put(params.min_p, args.min_p);
  put(params.typical_p, args.typical_p);
  put(params.repetition_penalty, args.repeat_penalty);
  put_count(params.penalty_last_n, args.repeat_last_n);
  put(params.presence_penalty, args.presence_penalty);
  put(params.frequency_penalty, args.frequency_penalty);
  if (args.seed) params.seed = *args.seed;
  for (const std::string& text : args.logit_bias) {
    HEADRACE_ASSIGN(auto bias, parse_bias(text));
    params.logit_bias.push_back(std::move(bias));
  }
  auto valid = validate(params, stop_of(args), vocab_size);
  if (!valid.ok()) {
    // A number out of range on the command line is wrong usage.
    valid.error().code = ErrorCode::invalid_argument;
    valid.error().where = flag_of(valid.error().where);
    return std::move(valid).error();
  }
  return params;
}

StopParams stop_of(const SamplingArgs& args) {
  StopParams stop;
  if (args.max_tokens) stop.max_tokens = *args.max_tokens;
  stop.ignore_eos = args.ignore_eos;
  return stop;
}

}  // namespace headrace::cli
