#include "app/bench_sample.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(BenchSample, Summary) {
  const SampleSummary odd = summarize({4, 1, 10});
  EXPECT_DOUBLE_EQ(odd.min, 1);
  EXPECT_DOUBLE_EQ(odd.median, 4);
  EXPECT_DOUBLE_EQ(odd.avg, 5);
  EXPECT_DOUBLE_EQ(odd.max, 10);
  EXPECT_DOUBLE_EQ(odd.stddev * odd.stddev, 21);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 10, 5}).median, 4.5);
  const SampleSummary one = summarize({7});
  EXPECT_DOUBLE_EQ(one.stddev, 0);
  EXPECT_DOUBLE_EQ(one.median, 7);
}

/// Two threads on two processors for ten seconds, and nobody else.
MeasuredStretch quiet() {
  MeasuredStretch stretch;
  stretch.before.machine = {.busy = 100, .stolen = 5, .num_processors = 2};
  stretch.before.own_seconds = 30;
  stretch.after = stretch.before;
  stretch.after.machine.busy += 20;
  stretch.after.own_seconds += 20;
  stretch.seconds = 10;
  stretch.num_threads = 2;
  stretch.num_processors = 2;
  return stretch;
}

const SampleSummary kSteady{.avg = 100, .min = 99, .median = 100, .max = 101, .stddev = 1};

TEST(BenchSample, AQuietMachineIsSteady) {
  EXPECT_TRUE(unsteady_reasons(kSteady, quiet()).empty());
  MeasuredStretch one_thread = quiet();
  one_thread.num_threads = 1;
  one_thread.after.own_seconds -= 10;  // the other processor is busy, and was free
  EXPECT_TRUE(unsteady_reasons(kSteady, one_thread).empty());
}

std::string only_reason(const SampleSummary& summary, const MeasuredStretch& stretch) {
  const auto reasons = unsteady_reasons(summary, stretch);
  EXPECT_EQ(reasons.size(), 1U);
  return reasons.empty() ? "" : reasons.front();
}

TEST(BenchSample, NamesWhatDisturbed) {
  SampleSummary spread = kSteady;
  spread.stddev = 12;
  EXPECT_NE(only_reason(spread, quiet()).find("differ by 12 %"), std::string::npos);

  MeasuredStretch others = quiet();
  others.after.own_seconds -= 6;
  EXPECT_NE(only_reason(kSteady, others).find("0.6 of 2 processors"), std::string::npos);

  MeasuredStretch stolen = quiet();
  stolen.after.machine.stolen += 2;
  EXPECT_NE(only_reason(kSteady, stolen).find("0.20 of 2 processors"), std::string::npos);

  MeasuredStretch preempted = quiet();
  preempted.after.preemptions += 1000;
  EXPECT_NE(only_reason(kSteady, preempted).find("50 times a second"), std::string::npos);

  MeasuredStretch crowded = quiet();
  crowded.num_threads = 8;
  crowded.after.preemptions += 100000;
  EXPECT_NE(only_reason(kSteady, crowded).find("8 threads"), std::string::npos);
}

TEST(BenchSample, ShortStretchesAndSilentSystemsProveNothing) {
  MeasuredStretch brief = quiet();
  brief.after.own_seconds -= 6;
  brief.seconds = 0.05;
  EXPECT_TRUE(unsteady_reasons(kSteady, brief).empty());
  MeasuredStretch silent = quiet();
  silent.before.machine = silent.after.machine = {};
  EXPECT_TRUE(unsteady_reasons(kSteady, silent).empty());
}

}  // namespace
}  // namespace headrace
