// Names and times of threads.
#include "base/os/threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace headrace {
namespace {

TEST(Threads, TimesAreKeptByName) {
  std::map<std::string, double> seen;
  std::thread([&seen] {
    name_this_thread("busy");
    const auto begun = std::chrono::steady_clock::now();
    volatile int spins = 0;
    while (std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(20)) {
      spins = spins + 1;
    }
    seen = thread_seconds();
  }).join();
  if (seen.empty()) GTEST_SKIP() << "the system does not tell of threads";
  ASSERT_TRUE(seen.contains("busy"));
  EXPECT_GT(seen["busy"], 0);
  EXPECT_LT(seen["busy"], 60);
  EXPECT_EQ(thread_seconds().count("busy"), 0U) << "it has ended";
}

}  // namespace
}  // namespace headrace
