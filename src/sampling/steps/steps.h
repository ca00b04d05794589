// The steps of the sampling chain, one file each. The first kind says how a row's logits are
// edited, the second shortens its candidates. A step at its default is not run.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "headrace/params.h"
#include "sampling/candidates.h"
#include "sampling/logit_edits.h"

namespace headrace {

// The first kind. They run in this order on one row's edits.

/// logits[id] += bias, for each pair.
void apply_logit_bias(std::span<const std::pair<TokenId, float>> bias, LogitEdits& edits);

/// What a row's penalties look at: prompt and completion so far.
struct TokenHistory {
  std::span<const TokenId> tokens;
  int64_t num_prompt_tokens = 0;  ///< of these, the first
};

/// Repetition penalty (arXiv:1909.05858, section 4.1) once for each token of the history;
/// presence and frequency penalties (as in OpenAI's API) for generated tokens. The history is cut
/// to its last `penalty_last_n` tokens.
void apply_penalties(const SamplingParams& params, const TokenHistory& history, LogitEdits& edits);

/// DRY: each token that would go on with a repeat of the history's last tokens loses multiplier *
/// base^(length - allowed_length), of the longest such repeat; at most 1e9. Repeats may overlap
/// what they repeat. Time is linear in the history.
void apply_dry(const SamplingParams& params, std::span<const TokenId> history, LogitEdits& edits);

/// The tokens cannot be chosen.
void apply_mask(std::span<const TokenId> ids, LogitEdits& edits);

// The second kind. On a part of a row (see candidates.h) they cut what they can tell.

/// Weights are of the distances to the largest logit divided by `temperature` > 0. The order of the
/// tokens stays that of their logits.
void apply_temperature(float temperature, Candidates& candidates);

/// Keeps the k most likely; k > 0.
void apply_top_k(int32_t k, Candidates& candidates);

/// Keeps the tokens whose information is closest to the entropy, until their probabilities reach
/// p (locally typical sampling, arXiv:2202.00666); at least one. Not on a part.
void apply_typical_p(float p, Candidates& candidates);

/// Keeps the most likely tokens until their probabilities reach p (nucleus sampling,
/// arXiv:1904.09751); at least one. On a part only where the total weight is known.
void apply_top_p(float p, Candidates& candidates);

/// Keeps the tokens at least p times as likely as the most likely one of the list
/// (arXiv:2407.01082); at least one.
void apply_min_p(float p, Candidates& candidates);

/// Drops all but the least likely of the tokens whose probability, at temperature 1 and among those
/// of the list, is at least `threshold`: the most obvious ones. Not on a part.
void apply_xtc(float threshold, Candidates& candidates);

/// Mirostat (arXiv:2007.14966): keeps as many of the most likely as a Zipf law, fitted to the first
/// hundred, needs for a surprise of `mu` bits; at least one.
void apply_mirostat_1(double mu, int64_t vocab_size, Candidates& candidates);

/// Mirostat 2.0: keeps the tokens whose surprise is at most `mu` bits; at least one. On a part only
/// where the total weight is known.
void apply_mirostat_2(double mu, Candidates& candidates);

}  // namespace headrace
