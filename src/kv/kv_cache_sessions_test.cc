// Prefixes that leave the cache and come back: what is located and restored, that a prefix restored
// is one as if it had been computed, and that nothing changes where there is no room.
#include <gtest/gtest.h>

#include <set>

#include "base/check.h"
#include "kv/kv_cache.h"
#include "kv/test_tokens.h"

namespace headrace {
namespace {

using test::counted;
using test::kBlockTokens;

/// A cache of a group without and one with a window, and what its blocks hold.
struct World {
  explicit World(std::vector<int64_t> num_blocks, int64_t window = 10)
      : cache(std::vector<CacheGeometry>{{kBlockTokens, 0}, {kBlockTokens, window}}, num_blocks,
              {}) {}

  /// As a sequence does that computes these tokens and ends.
  int64_t compute(std::span<const TokenId> tokens) {
    CachedTokens cached;
    cached.root = cache.root("");
    std::vector<BlockCopy> copies;
    const auto size = static_cast<int64_t>(tokens.size());
    const int64_t found = cache.attach(cached, tokens, size - 1, size + 1, copies);
    cache.end_copies(copies);
    for (int64_t computed = found; computed < size;) {
      computed = std::min(size, computed + kBlockTokens);
      EXPECT_TRUE(cache.grow(cached, computed));
      cache.advance(cached, tokens, computed);
    }
    cache.release(cached, tokens, size);
    cache.check_invariants();
    return found;
  }

  /// Restores, as from a file that has all blocks from `first` of the windows on.
  Result<bool> restore(std::span<const TokenId> tokens, int64_t first, bool accepts = true) {
    written.clear();
    const std::vector<int64_t> firsts{0, first};
    const auto result = cache.restore(
        cache.root(""), tokens, firsts,
        [&](size_t group, int64_t index, int32_t block) {
          EXPECT_EQ(cache.groups()[group].pool().references(block), 1);
          EXPECT_FALSE(cache.groups()[group].prefixes().contains(block));
          EXPECT_TRUE(written.insert({group, index}).second);
        },
        [&]() -> Result<void> {
          if (accepts) return {};
          return Error{ErrorCode::corrupt_data, "changed", "", ""};
        });
    cache.check_invariants();
    for (const CacheGroup& group : cache.groups()) {
      EXPECT_EQ(group.pool().num_unreferenced(), group.pool().num_blocks());
    }
    return result;
  }

  int64_t located(std::span<const TokenId> tokens) const {
    return cache.locate(cache.root(""), tokens).num_tokens;
  }

  KvCache cache;
  std::set<std::pair<size_t, int64_t>> written;
};

TEST(KvCacheSessions, LocatesWhatASequenceLeft) {
  World world({20, 20});
  const auto tokens = counted(30);
  EXPECT_EQ(world.located(tokens), 0);
  world.compute(tokens);
  const FoundPrefix found = world.cache.locate(world.cache.root(""), tokens);
  EXPECT_EQ(found.num_tokens, 30);
  ASSERT_EQ(found.groups.size(), 2U);
  EXPECT_EQ(found.groups[0].first, 0);
  EXPECT_EQ(found.groups[0].blocks.size(), 8U);
  // A token at 28 reads 19 and what follows, in blocks 4 to 6 and the begun one; as many again.
  EXPECT_EQ(found.groups[1].first, 1);
  EXPECT_EQ(found.groups[1].blocks.size(), 7U);
  for (const PrefixBlocks& group : found.groups) {
    EXPECT_EQ(std::set<int32_t>(group.blocks.begin(), group.blocks.end()).size(),
              group.blocks.size());
  }
  // Prefixes of it, and what goes on differently.
  EXPECT_EQ(world.located(std::span(tokens).first(13)), 13);
  auto other = tokens;
  other[17] = 99;
  EXPECT_EQ(world.located(other), 17);
  EXPECT_EQ(world.cache.locate(world.cache.root("another scope"), tokens).num_tokens, 0);
  EXPECT_EQ(world.located({}), 0);
}

TEST(KvCacheSessions, APrefixRestoredIsFound) {
  for (const size_t size : {1U, 3U, 4U, 5U, 29U, 30U, 32U}) {
    const auto tokens = counted(size);
    World world({20, 20});
    const auto num_full = static_cast<int64_t>(size) / kBlockTokens;
    const int64_t needed =
        world.cache.groups()[1].geometry().first_block_read(num_full * kBlockTokens);
    const auto restored = world.restore(tokens, needed);
    ASSERT_TRUE(restored.ok());
    EXPECT_TRUE(*restored);
    const auto num_blocks = (size + kBlockTokens - 1) / kBlockTokens;
    EXPECT_EQ(world.written.size(), 2 * num_blocks - static_cast<size_t>(needed));
    EXPECT_EQ(world.located(tokens), static_cast<int64_t>(size));
    auto longer = tokens;
    longer.push_back(500);
    EXPECT_EQ(world.compute(longer), static_cast<int64_t>(size)) << size;
  }
}

TEST(KvCacheSessions, WhatIsThereIsNotWrittenAgain) {
  World world({20, 20});
  const auto tokens = counted(30);
  world.compute(tokens);
  EXPECT_TRUE(*world.restore(tokens, 4));
  EXPECT_TRUE(world.written.empty());
  // Of a longer one the new blocks alone; the begun one was of other tokens.
  EXPECT_TRUE(*world.restore(counted(40), 7));
  using Blocks = std::set<std::pair<size_t, int64_t>>;
  EXPECT_EQ(world.written, (Blocks{{0, 7}, {0, 8}, {0, 9}, {1, 7}, {1, 8}, {1, 9}}));
}

TEST(KvCacheSessions, BlocksBehindAWindowNeedRoomThatIsOfNoUse) {
  World world({20, 7});
  const auto tokens = counted(28);
  EXPECT_TRUE(*world.restore(tokens, 0));
  EXPECT_EQ(world.written.size(), 14U);
  EXPECT_EQ(world.compute(std::span(tokens).first(9)), 8);
  // Where others' prefixes are in the way, only what is needed: blocks 4 to 6.
  World full({20, 7});
  full.compute(counted(20, 100));
  const int64_t num_evictions = full.cache.groups()[1].num_evictions();
  EXPECT_TRUE(*full.restore(tokens, 0));
  EXPECT_EQ(full.cache.groups()[1].num_evictions() - num_evictions, 1);
  EXPECT_EQ(full.written.size(), 7U + 3U);
  EXPECT_EQ(full.located(tokens), 28);
}

TEST(KvCacheSessions, WithoutRoomNothingChanges) {
  World world({20, 20});
  const auto others = counted(60, 100);
  CachedTokens running;
  running.root = world.cache.root("");
  std::vector<BlockCopy> copies;
  world.cache.attach(running, others, 59, 60, copies);
  ASSERT_TRUE(world.cache.grow(running, 60));
  world.cache.advance(running, others, 60);
  const auto tokens = counted(24);  // 6 blocks, and 5 are free
  world.written.clear();
  const std::vector<int64_t> first{0, 0};
  const auto restored = world.cache.restore(
      world.cache.root(""), tokens, first, [](size_t, int64_t, int32_t) { FAIL(); },
      []() -> Result<void> { return {}; });
  ASSERT_TRUE(restored.ok());
  EXPECT_FALSE(*restored);
  EXPECT_EQ(world.located(tokens), 0);
  EXPECT_EQ(world.located(others), 60);
  world.cache.check_invariants();
  world.cache.discard(running);
  EXPECT_TRUE(*world.restore(tokens, 0));
}

TEST(KvCacheSessions, WhatIsNotAcceptedIsNotFound) {
  World world({20, 20});
  const auto tokens = counted(30);
  const auto restored = world.restore(tokens, 0, false);
  ASSERT_FALSE(restored.ok());
  EXPECT_EQ(restored.error().message, "changed");
  EXPECT_FALSE(world.written.empty());
  EXPECT_EQ(world.located(tokens), 0);
  for (const CacheGroup& group : world.cache.groups()) EXPECT_EQ(group.num_cached(), 0);
  EXPECT_TRUE(*world.restore(tokens, 0));
  EXPECT_EQ(world.located(tokens), 30);
}

// A writer that throws, as a broken invariant does.
TEST(KvCacheSessions, AWriterThatThrowsLeavesNothing) {
  World world({20, 20});
  const auto tokens = counted(30);
  const std::vector<int64_t> first{0, 0};
  int num_written = 0;
  EXPECT_THROW((void)world.cache.restore(
                   world.cache.root(""), tokens, first,
                   [&](size_t, int64_t, int32_t) { HEADRACE_CHECK_LT(++num_written, 9); },
                   []() -> Result<void> { return {}; }),
               InternalError);
  world.cache.check_invariants();
  EXPECT_EQ(world.located(tokens), 0);
}

// Among others that compute, and in a pool that is too small for all: what is found is always what
// was computed or restored, whatever was given up.
TEST(KvCacheSessions, AmongOthers) {
  World world({12, 9});
  for (int round = 0; round < 300; ++round) {
    const auto first = static_cast<TokenId>(round * 7 % 5 * 1000);
    const auto tokens = counted(static_cast<size_t>(1 + round * 13 % 31), first);
    if (round % 3 == 0) {
      const auto restored = world.restore(tokens, 0);
      ASSERT_TRUE(restored.ok() && *restored);
      EXPECT_EQ(world.located(tokens), static_cast<int64_t>(tokens.size()));
    } else {
      world.compute(tokens);
    }
  }
}

}  // namespace
}  // namespace headrace
