// The options that say how tokens are chosen and when a generation ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "headrace/params.h"
#include "headrace/result.h"
#include "text/tokenizer.h"

namespace headrace::cli {

/// What the user gave; everything else stays with the model's or the documented defaults.
struct SamplingArgs {
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> typical_p;
  std::optional<double> repeat_penalty;
  std::optional<int64_t> repeat_last_n;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::vector<std::string> logit_bias;  ///< "ID=VALUE"
  std::optional<double> dry_multiplier;
  std::optional<double> dry_base;
  std::optional<int64_t> dry_allowed_length;
  std::optional<int64_t> dry_penalty_last_n;
  std::vector<std::string> dry_breakers;  ///< "none": none at all
  std::optional<double> xtc_probability;
  std::optional<double> xtc_threshold;
  std::optional<int64_t> mirostat;
  std::optional<double> mirostat_eta;
  std::optional<double> mirostat_tau;
  std::optional<uint64_t> seed;
  bool ignore_eos = false;
};

void add_sampling_options(std::vector<Option>& options, SamplingArgs& args);

/// What needs no model. Errors (invalid_argument, naming the flag): a malformed --logit-bias or
/// --dry-sequence-breaker, a parameter out of range.
Result<void> check_sampling(const SamplingArgs& args);

/// The texts that end a repeat: those given, in which \n, \t and \\ are what they are in C, else
/// the usual ones. Errors: those of check_sampling.
Result<std::vector<std::string>> dry_breakers_of(const SamplingArgs& args);

/// For those who ask the engine themselves: finds the tokens of the texts, where DRY is on. Returns
/// a warning for each text that is in no token.
Result<std::vector<std::string>> set_dry_breakers(const SamplingArgs& args,
                                                  const std::shared_ptr<const Tokenizer>& tokenizer,
                                                  SamplingParams& params);

/// What the user gave and what does nothing beside the rest: in place of some steps stands
/// mirostat.
std::vector<std::string> sampling_warnings(const SamplingArgs& args, const SamplingParams& params);

/// `defaults` with what the user gave put over them. Errors: those of check_sampling; an id outside
/// the vocabulary.
Result<SamplingParams> sampling_of(const SamplingArgs& args, SamplingParams defaults,
                                   int64_t vocab_size);
StopParams stop_of(const SamplingArgs& args);

}  // namespace headrace::cli
