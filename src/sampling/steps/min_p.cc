#include "sampling/steps/steps.h"

namespace headrace {

void apply_min_p(float p, Candidates& candidates) {
  // Weights are relative to the most likely token already.
  candidates.ensure_weights();
  std::erase_if(candidates.list(),
                [&](const Candidate& one) { return one.weight < static_cast<double>(p); });
}

}  // namespace headrace
