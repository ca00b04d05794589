#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

TEST(MinP, IsRelativeToTheMostLikely) {
  Candidates candidates = candidates_with({0.5, 0.3, 0.14, 0.06});
  apply_min_p(0.25F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{0, 1, 2}));
}

TEST(MinP, OneKeepsTheMostLikely) {
  Candidates candidates = candidates_with({0.3, 0.5, 0.2});
  apply_min_p(1.0F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{1}));
}

TEST(MinP, ComparesWithTheMostLikelyThatIsLeft) {
  Candidates candidates = candidates_with({0.7, 0.2, 0.09, 0.01});
  candidates.ensure_weights();
  candidates.list().erase(candidates.list().begin());  // as typical-p may
  candidates.cut();
  apply_min_p(0.4F, candidates);
  EXPECT_EQ(ids_left(candidates), (std::vector<TokenId>{1, 2}));
}

}  // namespace
}  // namespace headrace
