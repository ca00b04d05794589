#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_edits.h"

namespace headrace {
namespace {

TEST(LogitBias, AddsToTheNamedTokensOnly) {
  const std::vector<std::pair<TokenId, float>> bias = {{2, -5.0F}, {0, 0.5F}, {0, 0.25F}};
  LogitEdits edits;
  edits.begin_row();
  apply_logit_bias(bias, edits);
  EXPECT_EQ(edited({1, 2, 3}, edits), (std::vector<float>{1.75F, 2, -2}));
}

}  // namespace
}  // namespace headrace
