// See sample_rows.h.
#include "backend/sample_rows.h"

#include <cmath>

namespace headrace {

LogitFault find_logit_fault(std::span<const float> row, TokenId& token) {
  bool any_finite = false;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isfinite(row[i])) {
      any_finite = true;
    } else if (!(row[i] < 0)) {
      token = static_cast<TokenId>(i);
      return std::isnan(row[i]) ? LogitFault::not_a_number : LogitFault::infinite;
    }
  }
  return any_finite ? LogitFault::none : LogitFault::none_finite;
}

}  // namespace headrace
