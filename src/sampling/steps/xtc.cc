#include <algorithm>
#include <cmath>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_xtc(float threshold, Candidates& candidates) {
  auto& list = candidates.list();
  if (list.size() < 2) return;
  candidates.ensure_weights();
  double largest = list.front().logit;
  for (const Candidate& one : list) largest = std::max(largest, static_cast<double>(one.logit));
  const auto weight = [&](const Candidate& one) {
    return std::exp(static_cast<double>(one.logit) - largest);
  };
  double total = 0;
  for (const Candidate& one : list) total += weight(one);
  const double least = static_cast<double>(threshold) * total;
  // Of a weight of 0 at the request's temperature nothing can be drawn.
  const auto is_likely = [&](const Candidate& one) {
    return weight(one) >= least && one.weight > 0;
  };
  const Candidate* last = nullptr;
  size_t count = 0;
  for (const Candidate& one : list) {
    if (!is_likely(one)) continue;
    ++count;
    if (last == nullptr || more_likely(*last, one)) last = &one;
  }
  if (count < 2) return;
  const TokenId kept = last->id;
  std::erase_if(list, [&](const Candidate& one) { return one.id != kept && is_likely(one); });
  candidates.shorten();
}

}  // namespace headrace
