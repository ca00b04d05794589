// Log-probabilities of a row on the host, summed in one fixed order in double precision.
#pragma once

#include <span>
#include <vector>

#include "backend/sample_rows.h"
#include "base/function_ref.h"
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

/// The natural log of a probability, from the logit and its row's log_sum_exp.
inline float logprob_of(float logit, double normaliser) {
  return static_cast<float>(static_cast<double>(logit) - normaliser);
}

/// The `num_top` most likely tokens of a model's row: from the summary, or where that does not hold
/// so many, from the row itself.
std::vector<TokenLogprob> model_top(const RowSummary& summary, int32_t num_top,
                                    FunctionRef<std::span<float>()> read);

/// The id of the largest logit; ties go to the smaller id. `logits` is not empty.
TokenId argmax(std::span<const float> logits);

}  // namespace headrace
