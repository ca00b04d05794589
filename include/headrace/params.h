// What a request may ask of sampling and stopping. Part of the public C++ API.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/result.h"
#include "headrace/token.h"

namespace headrace {

/// How the next token is chosen from the logits. Steps run in the order of the members; a step at
/// its default does nothing. temperature 0 is greedy: the penalties, DRY, bias and masks still
/// apply, the steps after it do not matter.
struct SamplingParams {
  std::vector<std::pair<TokenId, float>> logit_bias{};  ///< added to the logit
  float repetition_penalty = 1.0F;  ///< > 0; positive logits of seen tokens / it, negative * it
  float presence_penalty = 0.0F;    ///< subtracted once for a token generated before
  float frequency_penalty = 0.0F;   ///< subtracted per time it was generated before
  int32_t penalty_last_n = -1;      ///< look back this many tokens; -1: all
  // DRY: a token that would go on with a repeat of the sequence's last tokens loses multiplier *
  // base^(length of the repeat - allowed_length), where that is no less than allowed_length.
  float dry_multiplier = 0.0F;      ///< >= 0; 0: off
  float dry_base = 1.75F;           ///< >= 1
  int32_t dry_allowed_length = 2;   ///< >= 0
  int32_t dry_penalty_last_n = -1;  ///< look back this many tokens; -1: all, 0: off
  /// No repeat reaches over one of these, and they are never penalised. In ascending order, once
  /// each; null: none. Shared, for there are thousands.
  std::shared_ptr<const std::vector<TokenId>> dry_breakers{};
  float temperature = 1.0F;      ///< >= 0
  int32_t top_k = 0;             ///< 0: all
  float typical_p = 1.0F;        ///< in (0, 1]
  float top_p = 1.0F;            ///< in (0, 1]
  float min_p = 0.0F;            ///< in [0, 1]; relative to the most likely token
  float xtc_probability = 0.0F;  ///< in [0, 1]: how often the next acts; 0: off
  float xtc_threshold = 0.1F;    ///< in [0, 1]: of the tokens as likely, only the last stays
  /// 0: off; 1, 2: the version of mirostat, in place of the steps from top_k to XTC.
  int32_t mirostat = 0;
  float mirostat_tau = 5.0F;       ///< >= 0: the surprise that is aimed at, in bits
  float mirostat_eta = 0.1F;       ///< >= 0: how fast it learns
  std::optional<uint64_t> seed{};  ///< none: a fresh one, reported back
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
