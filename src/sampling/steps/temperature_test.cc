#include <gtest/gtest.h>

#include <limits>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

TEST(Temperature, DividesDistances) {
  Candidates candidates = candidates_of({1, 3, 2});
  apply_temperature(0.5F, candidates);
  EXPECT_EQ(candidates.all()[0].logit, -4);
  EXPECT_EQ(candidates.all()[1].logit, 0);
  EXPECT_EQ(candidates.all()[2].logit, -2);
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
