// Log-probabilities of a row, summed in one fixed order in double precision.
#pragma once

#include <span>
#include <vector>

#include "headrace/request.h"
#include "headrace/result.h"

namespace headrace {

/// An Error (internal) naming what was found unless no logit is NaN or +Inf and one is finite.
Result<void> check_logits(std::span<const float> logits);

/// log(sum(exp(logits))): logits[i] minus it is the natural log of token i's probability.
double log_sum_exp(std::span<const float> logits);

/// The `count` most likely tokens, best first; ties go to the smaller id.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, size_t count);

/// The id of the largest logit; ties go to the smaller id. `logits` is not empty.
TokenId argmax(std::span<const float> logits);

}  // namespace headrace
