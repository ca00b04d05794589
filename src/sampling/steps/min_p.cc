#include <algorithm>
#include <cmath>

#include "sampling/steps/steps.h"

namespace headrace {
namespace {

/// Drops what is clearly too unlikely, without computing its weight.
void drop_hopeless(float p, Candidates& candidates) {
  auto& list = candidates.list();
  const double temperature = static_cast<double>(candidates.temperature());
  double largest = -HUGE_VAL;
  for (const Candidate& one : list) largest = std::max(largest, static_cast<double>(one.logit));
  const double least = largest + temperature * (std::log(static_cast<double>(p)) - 1.0);
  std::erase_if(list, [&](const Candidate& one) { return static_cast<double>(one.logit) < least; });
}

}  // namespace

void apply_min_p(float p, Candidates& candidates) {
  if (candidates.all().empty()) return;
  if (candidates.is_part()) {
    // The first is the most likely of all; tokens behind the last are no more likely than that.
    const double least = static_cast<double>(p) * candidates.weight(0);
    if (candidates.weight(candidates.size() - 1) >= least) return;
  }
  drop_hopeless(p, candidates);
  candidates.ensure_weights();
  // Of those that are left: typical-p may have dropped the most likely token of all.
  double largest = 0;
  for (const Candidate& one : candidates.all()) largest = std::max(largest, one.weight);
  const double least = static_cast<double>(p) * largest;
  std::erase_if(candidates.list(), [&](const Candidate& one) { return one.weight < least; });
  candidates.cut();
}

}  // namespace headrace
