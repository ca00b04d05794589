#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

TEST(TopP, KeepsTheTokenThatReachesP) {
  Candidates candidates = candidates_with({0.1, 0.5, 0.25, 0.15});
  apply_top_p(0.6F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{1, 2}));
}

TEST(TopP, AtLeastOne) {
  Candidates candidates = candidates_with({0.1, 0.5, 0.25, 0.15});
  apply_top_p(1e-6F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{1}));
}

TEST(TopP, LargeNucleiAreSortedBitByBit) {
  std::vector<float> logits(1000, 0.0F);
  Candidates candidates = candidates_of(logits);
  apply_top_p(0.5F, candidates);
  ASSERT_EQ(candidates.size(), 500U);
  EXPECT_EQ(ids_left(candidates).back(), 499) << "equal tokens: the smaller ids stay";
}

}  // namespace
}  // namespace headrace
