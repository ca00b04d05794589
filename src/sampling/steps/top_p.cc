#include "sampling/steps/steps.h"

namespace headrace {

void apply_top_p(float p, Candidates& candidates) {
  const double wanted = static_cast<double>(p) * candidates.total_weight();
  double reached = 0;
  // The nucleus is small as a rule: sort a little, and much more where that was not enough.
  for (size_t count = 0, sorted = 0; count < candidates.size(); ++count) {
    if (count == sorted) {
      sorted = sorted == 0 ? 64 : 8 * sorted;
      candidates.sort_first(sorted);
    }
    reached += candidates.weight(count);
    if (reached >= wanted) {
      candidates.keep_first(count + 1);
      return;
    }
  }
}

}  // namespace headrace
