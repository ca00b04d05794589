#include <algorithm>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_top_k(int32_t k, Candidates& candidates) {
  const size_t count = std::min(static_cast<size_t>(k), candidates.size());
  if (count == candidates.size()) return;
  candidates.sort_first(count);
  candidates.keep_first(count);
}

}  // namespace headrace
