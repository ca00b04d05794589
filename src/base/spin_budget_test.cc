#include "base/spin_budget.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

using std::chrono::microseconds;

TEST(SpinBudget, ShrinksWhereThreadsAreTakenOffAndGrowsBack) {
  SpinBudget budget;
  EXPECT_EQ(budget.iterations(), SpinBudget::kMost);
  EXPECT_FALSE(budget.was_taken_off(microseconds(10)));
  EXPECT_EQ(budget.iterations(), SpinBudget::kMost);
  EXPECT_TRUE(budget.was_taken_off(microseconds(3000)));
  EXPECT_EQ(budget.iterations(), SpinBudget::kMost / 4);
  for (int i = 0; i < 10; ++i) budget.was_taken_off(microseconds(3000));
  EXPECT_EQ(budget.iterations(), SpinBudget::kLeast);
  int num_good = 0;
  while (budget.iterations() < SpinBudget::kMost && num_good < 1000) {
    EXPECT_TRUE(budget.spin([] { return true; }));
    ++num_good;
  }
  EXPECT_EQ(budget.iterations(), SpinBudget::kMost);
  EXPECT_GT(num_good, 10);
}

TEST(SpinBudget, GivesUpAtItsEnd) {
  SpinBudget budget;
  int looks = 0;
  EXPECT_FALSE(budget.spin([&] {
    ++looks;
    return false;
  }));
  EXPECT_LE(looks, SpinBudget::kMost + 1);
  int later = 0;
  EXPECT_TRUE(budget.spin([&] { return ++later == 3; }));
}

}  // namespace
}  // namespace headrace
