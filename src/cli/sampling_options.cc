// See sampling_options.h.
#include "cli/sampling_options.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/read_number.h"
#include "cli/make_option.h"
#include "text/breaker_tokens.h"

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
      {"dry_multiplier", "--dry-multiplier"},
      {"dry_base", "--dry-base"},
      {"dry_allowed_length", "--dry-allowed-length"},
      {"dry_penalty_last_n", "--dry-penalty-last-n"},
      {"xtc_probability", "--xtc-probability"},
      {"xtc_threshold", "--xtc-threshold"},
      {"mirostat", "--mirostat"},
      {"mirostat_eta", "--mirostat-lr"},
      {"mirostat_tau", "--mirostat-ent"},
      {"max_tokens", "-n"},
  };
  for (const auto& [name, flag] : kFlags) {
    if (name == parameter) return std::string(flag);
  }
  return parameter;
}

/// A shell passes "\n" on as two characters.
Result<std::string> unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out.push_back(text[i]);
      continue;
    }
    const char next = ++i < text.size() ? text[i] : '\0';
    if (next != 'n' && next != 't' && next != '\\') {
      return Error{ErrorCode::invalid_argument,
                   "expected \\n, \\t or \\\\ where there is a backslash, got '" + text + "'",
                   "--dry-sequence-breaker", ""};
    }
    out.push_back(next == 'n' ? '\n' : next == 't' ? '\t' : '\\');
  }
  return out;
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
  add("--dry-multiplier", "X", "Strength of DRY, which keeps the text from repeating itself",
      &args.dry_multiplier, "0, which is off");
  add("--dry-base", "X", "DRY's penalty grows by this factor with each token of a repeat",
      &args.dry_base, "1.75");
  add("--dry-allowed-length", "N", "Repeats shorter than N tokens cost nothing",
      &args.dry_allowed_length, "2");
  add("--dry-penalty-last-n", "N", "Tokens that DRY looks back; -1 is all, 0 is off",
      &args.dry_penalty_last_n, "-1");
  add("--dry-sequence-breaker", "TEXT",
      "No repeat reaches over a token with TEXT in it; may be given several times, 'none' is none",
      &args.dry_breakers, "\\n : \" *");
  add("--xtc-probability", "P",
      "How often XTC drops the most likely tokens, all but the last of them", &args.xtc_probability,
      "0, which is off");
  add("--xtc-threshold", "P", "Tokens at least as likely are the most likely ones for XTC",
      &args.xtc_threshold, "0.1");
  add("--mirostat", "V",
      "Version of mirostat, 1 or 2, which steers the surprise in place of top-k, top-p, min-p, "
      "typical-p and XTC",
      &args.mirostat, "0, which is off");
  add("--mirostat-lr", "X", "Learning rate of mirostat (eta)", &args.mirostat_eta, "0.1");
  add("--mirostat-ent", "X", "Surprise that mirostat aims at, in bits a token (tau)",
      &args.mirostat_tau, "5");
  add("-s,--seed", "S", "Seed; the same seed gives the same text", &args.seed, "a fresh one");
  add("--ignore-eos", "", "Go on after the model's end token", &args.ignore_eos, "");
}

Result<void> check_sampling(const SamplingArgs& args) {
  HEADRACE_TRY(sampling_of(args, SamplingParams{}, std::numeric_limits<TokenId>::max()));
  HEADRACE_TRY(dry_breakers_of(args));
  return {};
}

Result<std::vector<std::string>> dry_breakers_of(const SamplingArgs& args) {
  if (args.dry_breakers.empty()) return default_breakers();
  std::vector<std::string> texts;
  if (args.dry_breakers.size() == 1 && args.dry_breakers.front() == "none") return texts;
  for (const std::string& text : args.dry_breakers) {
    if (text == "none") {
      return Error{ErrorCode::invalid_argument, "'none' cannot stand beside others",
                   "--dry-sequence-breaker", ""};
    }
    HEADRACE_ASSIGN(texts.emplace_back(), unescaped(text));
  }
  if (auto checked = check_breakers(texts); !checked.ok()) {
    checked.error().where = "--dry-sequence-breaker";
    return std::move(checked).error();
  }
  return texts;
}

Result<std::vector<std::string>> set_dry_breakers(const SamplingArgs& args,
                                                  const std::shared_ptr<const Tokenizer>& tokenizer,
                                                  SamplingParams& params) {
  std::vector<std::string> warnings;
  HEADRACE_ASSIGN(const auto texts, dry_breakers_of(args));
  if (params.dry_multiplier == 0.0F) return warnings;
  BreakerTokens found = BreakerFinder(tokenizer).find(texts);
  params.dry_breakers = std::move(found.ids);
  for (const std::string& text : found.unknown) {
    warnings.push_back("--dry-sequence-breaker: no token has '" + text +
                       "' in it, so that it breaks nothing");
  }
  return warnings;
}

std::vector<std::string> sampling_warnings(const SamplingArgs& args, const SamplingParams& params) {
  std::vector<std::string> warnings;
  if (params.mirostat == 0 || params.temperature == 0.0F) return warnings;
  const std::pair<const char*, bool> replaced[] = {
      {"--top-k", args.top_k.has_value()},
      {"--top-p", args.top_p.has_value()},
      {"--min-p", args.min_p.has_value()},
      {"--typical-p", args.typical_p.has_value()},
      {"--xtc-probability", args.xtc_probability.has_value()}};
  for (const auto& [flag, is_given] : replaced) {
    if (is_given) warnings.push_back(std::string(flag) + " does nothing, for mirostat is on");
  }
  return warnings;
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
  put(params.dry_multiplier, args.dry_multiplier);
  put(params.dry_base, args.dry_base);
  put_count(params.dry_allowed_length, args.dry_allowed_length);
  put_count(params.dry_penalty_last_n, args.dry_penalty_last_n);
  put(params.xtc_probability, args.xtc_probability);
  put(params.xtc_threshold, args.xtc_threshold);
  put_count(params.mirostat, args.mirostat);
  put(params.mirostat_eta, args.mirostat_eta);
  put(params.mirostat_tau, args.mirostat_tau);
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
