// The options that say how tokens are chosen and when a generation ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "headrace/params.h"
#include "headrace/result.h"

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
  std::optional<uint64_t> seed;
  bool ignore_eos = false;
};

void add_sampling_options(std::vector<Option>& options, SamplingArgs& args);

/// What needs no model. Errors (invalid_argument, naming the flag): a malformed --logit-bias, a
/// parameter out of range.
Result<void> check_sampling(const SamplingArgs& args);

/// `defaults` with what the user gave put over them. Errors: those of check_sampling; an id outside
/// the vocabulary.
Result<SamplingParams> sampling_of(const SamplingArgs& args, SamplingParams defaults,
                                   int64_t vocab_size);
StopParams stop_of(const SamplingArgs& args);

}  // namespace headrace::cli
