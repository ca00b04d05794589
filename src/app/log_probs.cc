#include "app/log_probs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace headrace {

double log_sum_exp(std::span<const float> logits) {
  float highest = -std::numeric_limits<float>::infinity();
  bool has_nan = false;
  for (const float value : logits) {
    has_nan |= std::isnan(value);
    highest = std::max(highest, value);
  }
  if (has_nan || !std::isfinite(highest)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const float value : logits) sum += std::exp(static_cast<double>(value - highest));
  return static_cast<double>(highest) + std::log(sum);
}

TokenId largest(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<TokenLogprob> top_logprobs(std::span<const float> logits, double normalizer,
                                       int64_t k) {
  const auto count = std::min<size_t>(static_cast<size_t>(std::max<int64_t>(k, 0)), logits.size());
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto better = [&](TokenId a, TokenId b) {
    const float left = logits[static_cast<size_t>(a)];
    const float right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    better);
  std::vector<TokenLogprob> out(count);
  for (size_t i = 0; i < count; ++i) {
    out[i].id = ids[i];
    out[i].logprob =
        static_cast<float>(static_cast<double>(logits[static_cast<size_t>(ids[i])]) - normalizer);
  }
  return out;
}

}  // namespace headrace
