#include <gtest/gtest.h>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;

Ids left_of(const std::vector<double>& probabilities, float threshold) {
  Candidates candidates = candidates_with(probabilities);
  apply_xtc(threshold, candidates);
  return ids_left(candidates);
}

TEST(Xtc, KeepsTheLeastLikelyOfTheObvious) {
  EXPECT_EQ(left_of({0.1, 0.4, 0.3, 0.15, 0.05}, 0.12F), (Ids{0, 3, 4}));
  EXPECT_EQ(left_of({0.1, 0.4, 0.3, 0.15, 0.05}, 0.35F), (Ids{0, 1, 2, 3, 4})) << "only one";
  EXPECT_EQ(left_of({0.1, 0.4, 0.3, 0.15, 0.05}, 0.45F), (Ids{0, 1, 2, 3, 4})) << "none";
  EXPECT_EQ(left_of({0.1, 0.4, 0.3, 0.15, 0.05}, 0.0F), (Ids{4})) << "all are";
}

TEST(Xtc, TiesAreThoseOfTheOrder) {
  EXPECT_EQ(left_of({0.25, 0.25, 0.25, 0.25}, 0.2F), (Ids{3}));
}

TEST(Xtc, OneTokenStays) {
  EXPECT_EQ(left_of({1.0}, 0.0F), (Ids{0}));
  EXPECT_EQ(left_of({}, 0.1F), (Ids{}));
}

TEST(Xtc, ProbabilitiesAreThoseAtTemperatureOne) {
  for (const float temperature : {0.1F, 1.0F, 30.0F}) {
    Candidates candidates = candidates_with({0.6, 0.25, 0.1, 0.05});
    apply_temperature(temperature, candidates);
    apply_xtc(0.2F, candidates);
    EXPECT_EQ(ids_left(candidates), (Ids{1, 2, 3})) << temperature;
  }
}

TEST(Xtc, ProbabilitiesAreThoseOfWhatIsLeft) {
  Candidates candidates = candidates_with({0.4, 0.1, 0.09, 0.08, 0.07, 0.26});
  apply_top_k(3, candidates);
  apply_xtc(0.12F, candidates);
  EXPECT_EQ(ids_left(candidates), (Ids{1})) << "0.1 of 0.76";
}

TEST(Xtc, LeavesATokenThatCanBeDrawn) {
  Candidates candidates = candidates_of({0, -1e30F, -3.0F});
  apply_xtc(0.0F, candidates);
  EXPECT_EQ(ids_left(candidates), (Ids{1, 2}));
  EXPECT_GT(candidates.total_weight(), 0);
}

}  // namespace
}  // namespace headrace
