#include "base/os/machine_load.h"

#include <gtest/gtest.h>

#include <chrono>

namespace headrace {
namespace {

TEST(MachineLoad, ReadsTheKernelsCounters) {
  const auto seconds = parse_processor_seconds(
      "cpu  100 20 30 4000 50 6 7 80 9 0\n"
      "cpu0 50 10 15 2000 25 3 3 40 4 0\n"
      "cpu1 50 10 15 2000 25 3 4 40 5 0\n"
      "intr 12345 0 0\nctxt 99\n",
      100);
  ASSERT_TRUE(seconds.has_value());
  EXPECT_DOUBLE_EQ(seconds->busy, 1.63);
  EXPECT_DOUBLE_EQ(seconds->stolen, 0.8);
  EXPECT_EQ(seconds->num_processors, 2);
}

TEST(MachineLoad, OldAndStrangeTexts) {
  const auto old = parse_processor_seconds("cpu 1 2 3 4\n", 1);
  ASSERT_TRUE(old.has_value());
  EXPECT_DOUBLE_EQ(old->busy, 6);
  EXPECT_DOUBLE_EQ(old->stolen, 0);
  EXPECT_FALSE(parse_processor_seconds("", 100).has_value());
  EXPECT_FALSE(parse_processor_seconds("cpu x y\n", 100).has_value());
  EXPECT_FALSE(parse_processor_seconds("processes 1\n", 100).has_value());
}

TEST(MachineLoad, CountsWhatThisProcessDoes) {
  const MachineLoad before = machine_load();
  const auto begin = std::chrono::steady_clock::now();
  double own = 0;
  // By processor time: this test may get little of it.
  while (own < 0.1 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) {
    own = machine_load().own_seconds - before.own_seconds;
  }
  EXPECT_GE(own, 0.1);
  const MachineLoad after = machine_load();
  EXPECT_GE(after.machine.busy, before.machine.busy);
  EXPECT_GE(after.preemptions, before.preemptions);
}

}  // namespace
}  // namespace headrace
