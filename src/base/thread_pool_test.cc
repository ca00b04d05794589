#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/os/pin_thread.h"

namespace headrace {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEachTaskOnceOnAKnownWorker) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    const int n = 1 + round % 37;
    std::vector<int> counts(static_cast<size_t>(n), 0);
    pool.parallel_for(n, [&](int64_t i, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, pool.num_threads());
      ++counts[static_cast<size_t>(i)];
    });
    for (const int count : counts) ASSERT_EQ(count, 1);
  }
}

TEST_P(ThreadPoolTest, WakesSleepersAndIsWokenByThem) {
  ThreadPool pool(GetParam());
  std::atomic<int> sum = 0;
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // longer than the spin
    pool.parallel_for(4, [&](int64_t i, int) {
      if (i == 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      sum += static_cast<int>(i);
    });
  }
  EXPECT_EQ(sum, 20 * 6);
}

TEST_P(ThreadPoolTest, ATaskMayThrowAndThePoolLives) {
  ThreadPool pool(GetParam());
  std::atomic<int> done = 0;
  EXPECT_THROW(pool.parallel_for(16,
                                 [&](int64_t i, int) {
                                   ++done;
                                   if (i == 5) throw std::runtime_error("five");
                                 }),
               std::runtime_error);
  EXPECT_EQ(done, 16);
  pool.parallel_for(8, [&](int64_t, int) { ++done; });
  EXPECT_EQ(done, 24);
}

TEST_P(ThreadPoolTest, PinnedThreadsStayOnOneProcessor) {
  // In a thread of its own, since the caller is pinned too.
  std::thread([&] {
    const int num_before = processors_of_this_thread();
    ThreadPool pool(GetParam(), /*pin=*/true);
    std::vector<int> processors(static_cast<size_t>(pool.num_threads()), -1);
    std::atomic<int> num_arrived = 0;
    pool.parallel_for(pool.num_threads(), [&](int64_t, int worker) {
      processors[static_cast<size_t>(worker)] = processors_of_this_thread();
      // Until every worker has one.
      ++num_arrived;
      while (num_arrived < pool.num_threads()) std::this_thread::yield();
    });
    for (const int processor : processors) EXPECT_EQ(processor, std::min(1, num_before));
  }).join();
}

TEST_P(ThreadPoolTest, ANestedCallRunsInPlace) {
  ThreadPool pool(GetParam());
  std::atomic<int> done = 0;
  pool.parallel_for(4, [&](int64_t, int outer) {
    pool.parallel_for(3, [&](int64_t, int inner) {
      EXPECT_EQ(inner, outer);
      ++done;
    });
  });
  EXPECT_EQ(done, 12);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace headrace
