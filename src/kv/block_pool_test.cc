#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "base/check.h"

namespace headrace {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnceThenNothing) {
  BlockPool pool(3);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate(), 2);
  EXPECT_EQ(pool.allocate(), std::nullopt);
  EXPECT_EQ(pool.num_unreferenced(), 0);
  pool.check_invariants();
}

TEST(BlockPool, ReusesTheOneLetGoFirst) {
  BlockPool pool(3);
  for (int i = 0; i < 3; ++i) pool.allocate();
  pool.release(2);
  pool.release(0);
  EXPECT_EQ(pool.allocate(), 2);
  EXPECT_EQ(pool.allocate(), 0);
}

TEST(BlockPool, RetainTakesAnUnreferencedBlockOutOfTheQueue) {
  BlockPool pool(3);
  pool.retain(1);
  EXPECT_EQ(pool.references(1), 1);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 2);
  EXPECT_EQ(pool.allocate(), std::nullopt);
}

TEST(BlockPool, SharedBlocksReturnWithTheLastReference) {
  BlockPool pool(1);
  pool.allocate();
  pool.retain(0);
  pool.release(0);
  EXPECT_EQ(pool.num_unreferenced(), 0);
  pool.release(0);
  EXPECT_EQ(pool.num_unreferenced(), 1);
  EXPECT_THROW(pool.release(0), InternalError);
  EXPECT_THROW(pool.retain(1), InternalError);
}

// Against a plain model: a deque of the unreferenced and a map of counts.
TEST(BlockPool, RandomTraceFollowsThePlainModel) {
  constexpr int32_t kBlocks = 17;
  BlockPool pool(kBlocks);
  std::deque<int32_t> queue;
  std::map<int32_t, int32_t> held;
  for (int32_t i = 0; i < kBlocks; ++i) queue.push_back(i);
  std::mt19937 random(7);
  for (int step = 0; step < 20000; ++step) {
    const auto block = static_cast<int32_t>(random() % kBlocks);
    switch (random() % 3) {
      case 0: {
        const auto got = pool.allocate();
        if (queue.empty()) {
          EXPECT_EQ(got, std::nullopt);
        } else {
          ASSERT_EQ(got, queue.front());
          held[queue.front()] = 1;
          queue.pop_front();
        }
        break;
      }
      case 1:
        pool.retain(block);
        if (held[block]++ == 0) queue.erase(std::find(queue.begin(), queue.end(), block));
        break;
      default:
        if (held[block] == 0) break;
        pool.release(block);
        if (--held[block] == 0) queue.push_back(block);
    }
    ASSERT_EQ(pool.num_unreferenced(), static_cast<int32_t>(queue.size()));
    if (step % 64 == 0) pool.check_invariants();
  }
  for (int32_t i = 0; i < kBlocks; ++i) EXPECT_EQ(pool.references(i), held[i]);
}

}  // namespace
}  // namespace headrace
