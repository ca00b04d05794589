#include <gtest/gtest.h>

#include "sampling/steps/steps.h"

namespace headrace {
namespace {

TEST(LogitBias, AddsToTheNamedTokensOnly) {
  std::vector<float> logits = {1, 2, 3};
  const std::vector<std::pair<TokenId, float>> bias = {{2, -5.0F}, {0, 0.5F}, {0, 0.25F}};
  apply_logit_bias(bias, logits);
  EXPECT_EQ(logits, (std::vector<float>{1.75F, 2, -2}));
}

}  // namespace
}  // namespace headrace
