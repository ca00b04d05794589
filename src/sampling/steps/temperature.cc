#include <algorithm>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_temperature(float temperature, Candidates& candidates) {
  auto& list = candidates.list();
  if (list.empty()) return;
  float largest = list.front().logit;
  for (const Candidate& one : list) largest = std::max(largest, one.logit);
  for (Candidate& one : list) one.logit = (one.logit - largest) / temperature;
}

}  // namespace headrace
