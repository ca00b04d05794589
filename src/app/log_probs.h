// From a row of logits to log-probabilities (natural log). Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/request.h"

namespace headrace {

/// log(sum(exp(logits))), in double. NaN if any logit is NaN or +Inf, or all are -Inf.
double log_sum_exp(std::span<const float> logits);

/// The index of the largest logit; ties go to the smaller id. `logits` must not be empty.
TokenId largest(std::span<const float> logits);

/// The k most likely tokens, best first, ties by id. `normalizer` is log_sum_exp(logits).
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, double normalizer, int64_t k);

}  // namespace headrace
