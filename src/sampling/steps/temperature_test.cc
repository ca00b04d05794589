#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

TEST(Temperature, DividesDistances) {
  Candidates candidates = candidates_of({1, 3, 2});
  apply_temperature(0.5F, candidates);
  EXPECT_DOUBLE_EQ(candidates.weight(0), std::exp(-4.0));
  EXPECT_DOUBLE_EQ(candidates.weight(1), 1.0);
  EXPECT_DOUBLE_EQ(candidates.weight(2), std::exp(-2.0));
}

TEST(Temperature, TheLargestLeavesAllEqual) {
  Candidates candidates = candidates_of({-3e38F, 3e38F});
  apply_temperature(std::numeric_limits<float>::max(), candidates);
  EXPECT_NEAR(candidates.weight(0), std::exp(-6.0 / 3.4028235), 1e-6);
}

TEST(Temperature, TheSmallestLeavesOnlyTheBestAndNoNaN) {
  for (const float temperature : {1e-4F, std::numeric_limits<float>::denorm_min()}) {
    Candidates candidates = candidates_of({10, 30, 29.9F});
    apply_temperature(temperature, candidates);
    EXPECT_DOUBLE_EQ(candidates.total_weight(), 1.0);
  }
}

}  // namespace
}  // namespace headrace
