#include "engine/scheduler/step_pacer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace headrace {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kMost = 256;

TEST(StepPacer, WithoutABoundPromptsTakeAllThereIs) {
  EXPECT_EQ(StepPacer(0).prompt_rows(8, kMost), kMost);
}

TEST(StepPacer, NobodyGeneratesNobodyWaits) {
  EXPECT_EQ(StepPacer(2).prompt_rows(0, kMost), kMost);
}

TEST(StepPacer, MeasuresAStepWithoutPromptsFirst) {
  StepPacer pacer(2);
  EXPECT_EQ(pacer.prompt_rows(8, kMost), 0);
  pacer.observe(8, 0, 20 * kMs);
  EXPECT_GT(pacer.prompt_rows(8, kMost), 0);
  EXPECT_EQ(pacer.prompt_rows(40, kMost), 0);  // of so many nothing is known
}

/// Rows of a step after many steps of a machine on which a row takes `row_ms`.
int64_t settled_rows(StepPacer& pacer, int64_t row_ms) {
  for (int i = 0; i < 50; ++i) pacer.observe(8, 0, 20 * kMs);
  int64_t rows = 0;
  for (int i = 0; i < 100; ++i) {
    rows = pacer.prompt_rows(8, kMost);
    pacer.observe(8, rows, 20 * kMs + rows * row_ms * kMs);
  }
  return rows;
}

TEST(StepPacer, SettlesWhereAStepTakesAsLongAsItMay) {
  StepPacer twice(2);
  EXPECT_NEAR(static_cast<double>(settled_rows(twice, 1)), 20, 1);
  StepPacer thrice(3);
  EXPECT_NEAR(static_cast<double>(settled_rows(thrice, 1)), 40, 1);
  StepPacer slow(2);
  EXPECT_EQ(settled_rows(slow, 10), 4);  // the fewest
}

TEST(StepPacer, OneInterruptionChangesLittle) {
  StepPacer pacer(2);
  settled_rows(pacer, 1);
  pacer.observe(8, 20, 2000 * kMs);
  EXPECT_GE(pacer.prompt_rows(8, kMost), 10);
}

TEST(StepPacer, AFirstStepThatWasHeldUpIsForgotten) {
  StepPacer pacer(2);
  pacer.observe(8, 0, 1000 * kMs);
  int64_t rows = 0;
  for (int i = 0; i < 100; ++i) {
    rows = pacer.prompt_rows(8, kMost);
    pacer.observe(8, rows, 20 * kMs + rows * kMs);
  }
  EXPECT_LE(rows, 60);
}

TEST(StepPacer, AClockThatStandsStillIsNoFault) {
  StepPacer pacer(2);
  pacer.observe(8, 0, 0);
  pacer.observe(8, 4, 0);
  EXPECT_GT(pacer.prompt_rows(8, kMost), 0);
}

// The slow steps are compared, so prompts get more where steps vary anyway.
TEST(StepPacer, KeepsTheSlowStepsWithinTheBound) {
  StepPacer pacer(2);
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.1);
  const auto taken = [&](int64_t rows) {
    return static_cast<int64_t>(static_cast<double>((20 + rows) * kMs) * noise(random));
  };
  std::vector<int64_t> calm;
  std::vector<int64_t> mixed;
  for (int i = 0; i < 1000; ++i) {
    calm.push_back(taken(0));
    pacer.observe(8, 0, calm.back());
  }
  int64_t num_rows = 0;
  for (int i = 0; i < 1000; ++i) {
    const int64_t rows = pacer.prompt_rows(8, kMost);
    num_rows += rows;
    mixed.push_back(taken(rows));
    pacer.observe(8, rows, mixed.back());
  }
  std::sort(calm.begin(), calm.end());
  std::sort(mixed.begin(), mixed.end());
  EXPECT_LE(mixed[990], 2.15 * static_cast<double>(calm[990]));
  EXPECT_GE(num_rows, 1000 * 16);
}

}  // namespace
}  // namespace headrace
