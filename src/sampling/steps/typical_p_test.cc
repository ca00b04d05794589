#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

// Entropy of (0.6, 0.2, 0.1, 0.1) is 1.0889 nats; the information of the tokens is 0.51, 1.61,
// 2.30, 2.30, so the distances are 0.578, 0.521, 1.214, 1.214: token 1 comes before token 0.
TEST(TypicalP, OrdersByDistanceToTheEntropy) {
  Candidates candidates = candidates_with({0.6, 0.2, 0.1, 0.1});
  apply_typical_p(0.15F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{1}));

  candidates = candidates_with({0.6, 0.2, 0.1, 0.1});
  apply_typical_p(0.5F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{0, 1}));

  candidates = candidates_with({0.6, 0.2, 0.1, 0.1});
  apply_typical_p(0.85F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{0, 1, 2})) << "ties: the smaller id";
}

TEST(TypicalP, AVanishedTokenIsNoNaN) {
  Candidates candidates = candidates_of({0, -1e30F, -0.5F});
  apply_typical_p(0.99F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{0, 2}));
}

}  // namespace
}  // namespace headrace
