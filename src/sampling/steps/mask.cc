#include <limits>

#include "sampling/steps/steps.h"

namespace headrace {

void apply_mask(std::span<const TokenId> ids, LogitEdits& edits) {
  for (const TokenId id : ids) edits.of(id).bias = -std::numeric_limits<float>::infinity();
}

}  // namespace headrace
