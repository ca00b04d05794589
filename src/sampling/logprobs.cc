// See logprobs.h.
#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace headrace {

Result<void> check_logits(const RowSummary& summary) {
  const std::string hint = "the model file may be damaged";
  switch (summary.fault) {
    case LogitFault::none:
      return {};
    case LogitFault::none_finite:
      return Error{ErrorCode::internal, "the model gave no finite logit", "", hint};
    case LogitFault::not_a_number:
    case LogitFault::infinite:
      break;
  }
  const std::string found = summary.fault == LogitFault::infinite ? "+Inf" : "NaN";
  return Error{
      ErrorCode::internal,
      "the model gave the logit " + found + " for token " + std::to_string(summary.fault_token), "",
      hint};
}

Result<void> check_logits(std::span<const float> logits) {
  RowSummary summary;
  summary.fault = find_logit_fault(logits, summary.fault_token);
  return check_logits(summary);
}

double log_sum_exp(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, size_t count,
                                       double normaliser) {
  count = std::min(count, logits.size());
  const auto comes_before = [&](TokenId a, TokenId b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  // A heap of the best so far, its worst on top: one pass over the row.
  std::vector<TokenId> best;
  best.reserve(count + 1);
  for (size_t i = 0; count > 0 && i < logits.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (best.size() == count && !comes_before(id, best.front())) continue;
    best.push_back(id);
    std::push_heap(best.begin(), best.end(), comes_before);
    if (best.size() <= count) continue;
    std::pop_heap(best.begin(), best.end(), comes_before);
    best.pop_back();
  }
  std::sort_heap(best.begin(), best.end(), comes_before);
  std::vector<TokenLogprob> out;
  out.reserve(best.size());
  for (const TokenId id : best) {
    const auto logit = static_cast<double>(logits[static_cast<size_t>(id)]);
    out.push_back({id, static_cast<float>(logit - normaliser)});
  }
  return out;
}

TokenId argmax(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<TokenLogprob> model_top(const RowSummary& summary, int32_t num_top,
                                    FunctionRef<std::span<float>()> read) {
  if (num_top > kMaxTopLogits) {
    return top_logprobs(read(), static_cast<size_t>(num_top), summary.log_sum_exp);
  }
  std::vector<TokenLogprob> out;
  out.reserve(summary.model_top.size());
  for (const TokenLogit& one : summary.model_top) {
    out.push_back({one.id, logprob_of(one.logit, summary.log_sum_exp)});
  }
  return out;
}

}  // namespace headrace
