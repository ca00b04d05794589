#include "sampling/steps/steps.h"

namespace headrace {

void apply_logit_bias(std::span<const std::pair<TokenId, float>> bias, std::span<float> logits) {
  for (const auto& [id, value] : bias) logits[static_cast<size_t>(id)] += value;
}

}  // namespace headrace
