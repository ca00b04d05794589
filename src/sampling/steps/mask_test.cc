#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_edits.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using test::kInf;

// Whatever else is asked of the token.
TEST(Mask, ForbidsTheToken) {
  LogitEdits edits;
  edits.begin_row();
  apply_logit_bias(std::vector<std::pair<TokenId, float>>{{1, 1e9F}, {3, 2}}, edits);
  const std::vector<TokenId> tokens = {1, 2};
  const SamplingParams params{.repetition_penalty = 2.0F, .presence_penalty = -1e9F};
  apply_penalties(params, {tokens, 0}, edits);
  apply_mask(tokens, edits);
  EXPECT_EQ(edited({5, 6, 7, 8}, edits), (std::vector<float>{5, -kInf, -kInf, 10}));
}

}  // namespace
}  // namespace headrace
