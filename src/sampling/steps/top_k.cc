#include <algorithm>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_top_k(int32_t k, Candidates& candidates) {
  const auto wanted = static_cast<size_t>(k);
  if (candidates.is_part() && wanted > candidates.size()) return;
  const size_t count = std::min(wanted, candidates.size());
  candidates.sort_first(count);
  candidates.keep_first(count);
}

}  // namespace headrace
