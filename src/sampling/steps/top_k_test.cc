#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

TEST(TopK, KeepsTheMostLikelyTiesToTheSmallerId) {
  Candidates candidates = candidates_of({1, 5, 3, 3, 3, 0});
  apply_top_k(3, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{1, 2, 3}));
}

TEST(TopK, MoreThanThereAreKeepsAll) {
  Candidates candidates = candidates_of({1, 5});
  apply_top_k(1000000, candidates);
  EXPECT_EQ(candidates.size(), 2U);
}

}  // namespace
}  // namespace headrace
