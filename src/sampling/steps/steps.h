// The steps of the sampling chain, one file each. The first kind edits a row's logits, the second
// shortens its candidates. A step at its default is not run.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "headrace/params.h"
#include "sampling/candidates.h"

namespace headrace {

/// logits[id] += bias, for each pair.
void apply_logit_bias(std::span<const std::pair<TokenId, float>> bias, std::span<float> logits);

/// What a row's penalties look at: prompt and completion so far.
struct TokenHistory {
  std::span<const TokenId> tokens;
  int64_t num_prompt_tokens = 0;  ///< of these, the first
};

/// Working memory of apply_penalties, reused from row to row.
struct PenaltyScratch {
  std::vector<uint32_t> num_generated;  ///< by token id; all 0 between calls
  std::vector<bool> seen;               ///< by token id; all false between calls
};

/// Repetition penalty (arXiv:1909.05858, section 4.1) once for each token of the history;
/// presence and frequency penalties (as in OpenAI's API) for generated tokens. The history is cut
/// to its last `penalty_last_n` tokens.
void apply_penalties(const SamplingParams& params, const TokenHistory& history,
                     std::span<float> logits, PenaltyScratch& scratch);

/// Divides the distances to the largest logit by `temperature` > 0. Distances, so that the smallest
/// temperature overflows to -Inf (weight 0) and never to NaN.
void apply_temperature(float temperature, Candidates& candidates);

/// Keeps the k most likely; k > 0.
void apply_top_k(int32_t k, Candidates& candidates);

/// Keeps the tokens whose information is closest to the entropy, until their probabilities reach
/// p (locally typical sampling, arXiv:2202.00666); at least one.
void apply_typical_p(float p, Candidates& candidates);

/// Keeps the most likely tokens until their probabilities reach p (nucleus sampling,
/// arXiv:1904.09751); at least one.
void apply_top_p(float p, Candidates& candidates);

/// Keeps the tokens at least p times as likely as the most likely one of the list
/// (arXiv:2407.01082); at least one.
void apply_min_p(float p, Candidates& candidates);

}  // namespace headrace
