#include "kv/block_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/check.h"

namespace headrace {
namespace {

TEST(BlockTable, GrowsByWholeBlocksAndReturnsThem) {
  CacheGroup group({.block_tokens = 16, .window = 0}, 4);
  {
    BlockTable table(group, 100);
    table.grow(1);
    EXPECT_EQ(table.blocks().size(), 1U);
    table.grow(16);
    EXPECT_EQ(table.blocks().size(), 1U);
    table.grow(17);
    EXPECT_EQ(table.blocks().size(), 2U);
    table.reclaim(1000);
    EXPECT_EQ(table.num_held(), 2) << "without a window nothing slides out";
    EXPECT_FALSE(table.grow(65)) << "more than there are";
    EXPECT_EQ(table.num_held(), 2) << "and none was taken";
    EXPECT_TRUE(table.grow(64));
  }
  EXPECT_EQ(group.pool().num_unreferenced(), 4);
}

TEST(BlockTable, WindowGivesBlocksBackExactlyWhenNoQueryCanReadThem) {
  CacheGroup group({.block_tokens = 4, .window = 6}, 8);
  BlockTable table(group, 100);
  table.grow(12);
  // The query at 8 reads keys 3..8: key 3 is in block 0.
  table.reclaim(8);
  EXPECT_EQ(table.num_held(), 3);
  // The query at 9 reads keys 4..9.
  table.reclaim(9);
  EXPECT_EQ(table.num_held(), 2);
  EXPECT_EQ(table.blocks()[0], BlockTable::kReleasedBlock);
  EXPECT_EQ(table.blocks().size(), 3U);
  table.check_invariants();
}

TEST(BlockTable, MovedFromTableHoldsNothing) {
  CacheGroup group({.block_tokens = 16, .window = 0}, 2);
  BlockTable first(group, 32);
  first.grow(20);
  {
    BlockTable second(std::move(first));
    EXPECT_EQ(second.num_held(), 2);
  }
  EXPECT_EQ(group.pool().num_unreferenced(), 2);
}

TEST(CacheGroup, MaxBlocksHeldIsReachedAndNeverPassed) {
  for (const int64_t block_tokens : {4, 16}) {
    for (const int64_t window : {1, 2, 5, 16, 33}) {
      for (const int64_t step : {1, 3, 16, 40}) {
        const CacheGeometry geometry{block_tokens, window};
        const int64_t bound = max_blocks_held(geometry, 400, step);
        int64_t most = 0;
        // Every phase of the block borders: the first step may be shorter.
        for (int64_t first = 1; first <= step; ++first) {
          CacheGroup group(geometry, 200);
          BlockTable table(group, 400);
          int64_t done = 0;
          for (int64_t rows = first; done + rows <= 400; done += rows, rows = step) {
            table.reclaim(done);
            table.grow(done + rows);
            most = std::max(most, table.num_held());
          }
        }
        EXPECT_LE(most, bound);
        EXPECT_GE(most + 1, bound) << block_tokens << " " << window << " " << step;
      }
    }
  }
}

// Sequences of random lengths come, grow in random steps and go; no block has two owners.
TEST(BlockTable, RandomTracesKeepBlocksApart) {
  struct Running {
    std::unique_ptr<BlockTable> table;
    int64_t max_tokens;
    int64_t num_tokens;
  };
  std::mt19937 random(11);
  for (const int64_t window : {0, 20}) {
    CacheGroup group({.block_tokens = 16, .window = window}, 40);
    std::vector<Running> running;
    for (int step = 0; step < 5000; ++step) {
      const int64_t wanted = 1 + static_cast<int64_t>(random() % 300);
      if (random() % 4 == 0) {
        running.push_back({std::make_unique<BlockTable>(group, wanted), wanted, 0});
      }
      for (auto& one : running) {
        const int64_t rows = std::min<int64_t>(1 + static_cast<int64_t>(random() % 32),
                                               one.max_tokens - one.num_tokens);
        one.table->reclaim(one.num_tokens);
        if (one.table->grow(one.num_tokens + rows)) one.num_tokens += rows;
      }
      std::erase_if(running, [&](const Running& one) {
        return one.num_tokens == one.max_tokens || random() % 20 == 0;
      });
      std::set<int32_t> owned;
      for (const auto& one : running) {
        one.table->check_invariants();
        for (const int32_t block : one.table->blocks()) {
          if (block == BlockTable::kReleasedBlock) continue;
          ASSERT_TRUE(owned.insert(block).second) << "block " << block << " has two owners";
        }
      }
      group.check_invariants();
      ASSERT_EQ(static_cast<int64_t>(owned.size()),
                group.pool().num_blocks() - group.pool().num_unreferenced());
    }
  }
}

}  // namespace
}  // namespace headrace
