#include <algorithm>
#include <cmath>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_typical_p(float p, Candidates& candidates) {
  candidates.ensure_weights();
  const double total = candidates.total_weight();
  auto& list = candidates.list();
  // A token's information is log(total) - distance; their mean is the entropy, so that log(total)
  // falls out of the difference of the two.
  double mean = 0;
  for (const Candidate& one : list) mean += one.weight * candidates.distance(one.logit);
  mean /= total;
  const auto off = [&](const Candidate& one) {
    return std::abs(candidates.distance(one.logit) - mean);
  };
  const auto more_typical = [&](const Candidate& a, const Candidate& b) {
    const double x = off(a);
    const double y = off(b);
    return x != y ? x < y : more_likely(a, b);
  };
  const double wanted = static_cast<double>(p) * total;
  double reached = 0;
  size_t count = 0;
  for (size_t sorted = 0; count < list.size() && reached < wanted; ++count) {
    if (count == sorted) {
      sorted = std::min(list.size(), sorted == 0 ? 64 : 8 * sorted);
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(count);
      const auto end = list.begin() + static_cast<std::ptrdiff_t>(sorted);
      if (end != list.end()) std::nth_element(begin, end, list.end(), more_typical);
      std::sort(begin, end, more_typical);
    }
    reached += list[count].weight;
  }
  list.resize(std::max<size_t>(count, 1));
  candidates.cut();
}

}  // namespace headrace
