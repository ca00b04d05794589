#include <algorithm>
#include <cmath>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_typical_p(float p, Candidates& candidates) {
  candidates.ensure_weights();
  const double total = candidates.total_weight();
  auto& list = candidates.list();
  double entropy = 0;
  for (const Candidate& one : list) {
    const double probability = one.weight / total;
    if (probability > 0) entropy -= probability * std::log(probability);
  }
  const auto distance = [&](const Candidate& one) {
    return std::abs(-std::log(one.weight / total) - entropy);
  };
  std::sort(list.begin(), list.end(), [&](const Candidate& a, const Candidate& b) {
    const double da = distance(a);
    const double db = distance(b);
    return da != db ? da < db : more_likely(a, b);
  });
  double reached = 0;
  size_t count = 0;
  while (count < list.size() && reached < static_cast<double>(p) * total) {
    reached += list[count++].weight;
  }
  list.resize(std::max<size_t>(count, 1));
  candidates.cut();
}

}  // namespace headrace
