#include <algorithm>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_min_p(float p, Candidates& candidates) {
  if (candidates.all().empty()) return;
  if (candidates.is_part()) {
    // The first is the most likely of all; tokens behind the last are no more likely than that.
    const double least = static_cast<double>(p) * candidates.weight(0);
    if (candidates.weight(candidates.size() - 1) >= least) return;
  }
  candidates.ensure_weights();
  // Of those that are left: typical-p may have dropped the most likely token of all.
  double largest = 0;
  for (const Candidate& one : candidates.all()) largest = std::max(largest, one.weight);
  const double least = static_cast<double>(p) * largest;
  std::erase_if(candidates.list(), [&](const Candidate& one) { return one.weight < least; });
  candidates.cut();
}

}  // namespace headrace
