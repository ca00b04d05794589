// What a request may ask of sampling and stopping. Part of the public C++ API.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/result.h"
#include "headrace/token.h"

namespace headrace {

/// How the next token is chosen from the logits. Steps run in the order of the members; a step at
/// its default does nothing. temperature 0 is greedy: the penalties, bias and masks still apply,
/// the truncating steps do not matter.
struct SamplingParams {
  std::vector<std::pair<TokenId, float>> logit_bias{};  ///< added to the logit
  float repetition_penalty = 1.0F;  ///< > 0; positive logits of seen tokens / it, negative * it
  float presence_penalty = 0.0F;    ///< subtracted once for a token generated before
  float frequency_penalty = 0.0F;   ///< subtracted per time it was generated before
  int32_t penalty_last_n = -1;      ///< look back this many tokens; -1: all
  float temperature = 1.0F;         ///< >= 0
  int32_t top_k = 0;                ///< 0: all
  float typical_p = 1.0F;           ///< in (0, 1]
  float top_p = 1.0F;               ///< in (0, 1]
  float min_p = 0.0F;               ///< in [0, 1]; relative to the most likely token
  std::optional<uint64_t> seed{};   ///< none: a fresh one, reported back
};

/// When a generation ends.
struct StopParams {
  int64_t max_tokens = -1;  ///< -1: until an end token or the context is full
  int64_t min_tokens = 0;   ///< end and stop tokens are masked before this many
  std::vector<TokenId> stop_token_ids{};
  bool ignore_eos = false;
};

/// Errors name the parameter, what is allowed and what was given. `vocab_size` bounds token ids.
Result<void> validate(const SamplingParams& sampling, const StopParams& stop, int64_t vocab_size);

}  // namespace headrace
