#include <algorithm>
#include <cmath>
#include <numbers>

#include "sampling/steps/steps.h"

namespace headrace {
namespace {

/// Tokens that the Zipf law is fitted to.
constexpr size_t kFitted = 100;

/// The exponent of the law: least squares of log(p[i] / p[i + 1]) over log((i + 2) / (i + 1)).
double zipf_exponent(const Candidates& candidates, size_t count) {
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i + 1 < count; ++i) {
    const auto rank = static_cast<double>(i);
    const double expected = std::log((rank + 2) / (rank + 1));
    const double found = candidates.distance(candidates.all()[i].logit) -
                         candidates.distance(candidates.all()[i + 1].logit);
    products += expected * found;
    squares += expected * expected;
  }
  return squares > 0 ? products / squares : 0;
}

/// The natural log of the number of tokens that together have a surprise of `mu` bits under the
/// law: of (e 2^mu / (1 - N^-e))^(1/s), e = s - 1. In logs, so that nothing overflows.
double log_of_tokens(double exponent, double mu, int64_t vocab_size) {
  exponent = std::max(exponent, 1e-9);
  const double log_n = std::log(static_cast<double>(vocab_size));
  const double e = exponent - 1;
  // e / (1 - N^-e) is positive on either side of e = 0, where it is 1 / log(N).
  const double log_ratio = std::abs(e * log_n) < 1e-6
                               ? -std::log(log_n)
                               : std::log(std::abs(e)) - std::log(std::abs(std::expm1(-e * log_n)));
  return (log_ratio + mu * std::numbers::ln2) / exponent;
}

}  // namespace

void apply_mirostat_1(double mu, int64_t vocab_size, Candidates& candidates) {
  if (candidates.all().empty()) return;
  // No more than that are at hand.
  if (candidates.is_part() && candidates.size() < kFitted) return;
  candidates.sort_first(kFitted);
  const size_t fitted = std::min(kFitted, candidates.size());
  const double log_k = log_of_tokens(zipf_exponent(candidates, fitted), mu, vocab_size);
  // The count is never above the number of tokens, which may not be known here.
  const double most = std::log(static_cast<double>(vocab_size));
  const double k = log_k >= most ? static_cast<double>(vocab_size) : std::exp(log_k);
  const size_t count = k >= 1 ? static_cast<size_t>(k) : 1;  // 1 for what is no number, too
  if (candidates.is_part() && count > candidates.size()) return;
  candidates.sort_first(count);
  candidates.keep_first(std::min(count, candidates.size()));
}

void apply_mirostat_2(double mu, Candidates& candidates) {
  if (candidates.all().empty()) return;
  const double least = candidates.total_weight() * std::exp2(-mu);
  if (candidates.is_part() && candidates.weight(candidates.size() - 1) >= least) return;
  candidates.ensure_weights();
  auto& list = candidates.list();
  const auto is_expected = [&](const Candidate& one) { return one.weight >= least; };
  const auto count = static_cast<size_t>(std::count_if(list.begin(), list.end(), is_expected));
  if (count == 0) {
    candidates.sort_first(1);
    return candidates.keep_first(1);
  }
  std::erase_if(list, [&](const Candidate& one) { return !is_expected(one); });
  // As many may have come from a part, which is in order. More are not worth the sorting.
  if (count <= static_cast<size_t>(kMaxTopLogits)) {
    candidates.cut();
  } else {
    candidates.shorten();
  }
}

}  // namespace headrace
