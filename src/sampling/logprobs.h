// Log-probabilities of a row on the host, summed in one fixed order in double precision.
#pragma once

#include <span>
#include <vector>

#include "backend/sample_rows.h"
#include "headrace/request.h"
#include "headrace/result.h"

namespace headrace {

/// An Error (internal) that names the fault of a model's row, if there is one.
Result<void> check_logits(const RowSummary& summary);
/// The same of a row on the host: NaN, +Inf, or no finite logit.
Result<void> check_logits(std::span<const float> logits);

/// log(sum(exp(logits))): logits[i] minus it is the natural log of token i's probability.
double log_sum_exp(std::span<const float> logits);

/// The `count` most likely tokens, best first; ties go to the smaller id. `normaliser`: the row's
/// log_sum_exp.
std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, size_t count,
                                       double normaliser);
inline std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, size_t count) {
  return top_logprobs(logits, count, log_sum_exp(logits));
}

/// The id of the largest logit; ties go to the smaller id. `logits` is not empty.
TokenId argmax(std::span<const float> logits);

}  // namespace headrace
