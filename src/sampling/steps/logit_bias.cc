#include "sampling/steps/steps.h"

namespace headrace {

void apply_logit_bias(std::span<const std::pair<TokenId, float>> bias, LogitEdits& edits) {
  for (const auto& [id, value] : bias) edits.of(id).bias += value;
}

}  // namespace headrace
