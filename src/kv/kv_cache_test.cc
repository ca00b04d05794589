#include "kv/kv_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/check.h"
#include "kv/test_tokens.h"

namespace headrace {
namespace {

using test::counted;
using test::kBlockTokens;

/// A full group and one with a window of 6.
KvCache two_groups(int64_t num_blocks = 32) {
  const std::vector<CacheGeometry> geometries{{kBlockTokens, 0}, {kBlockTokens, 6}};
  const std::vector<int64_t> blocks{num_blocks, num_blocks};
  return KvCache(geometries, blocks, {.fingerprint = "model"});
}

CachedTokens begin(const KvCache& cache) {
  CachedTokens cached;
  cached.root = cache.root("");
  return cached;
}

/// Computes tokens as a sequence would, in steps of `chunk`, from what the cache has of them.
int64_t compute(KvCache& cache, CachedTokens& cached, const std::vector<TokenId>& tokens,
                int64_t chunk) {
  std::vector<BlockCopy> copies;
  const auto size = static_cast<int64_t>(tokens.size());
  const int64_t found = cache.attach(cached, tokens, size - 1, size + 8, copies);
  cache.end_copies(copies);
  for (int64_t done = found; done < size; done = std::min(done + chunk, size)) {
    EXPECT_TRUE(cache.grow(cached, std::min(done + chunk, size)));
    cache.advance(cached, tokens, std::min(done + chunk, size));
  }
  return found;
}

TEST(KvCache, FindsWhatWasComputedAlsoBehindAWindow) {
  KvCache cache = two_groups();
  const auto tokens = counted(30);
  CachedTokens first = begin(cache);
  EXPECT_EQ(compute(cache, first, tokens, 5), 0);
  CachedTokens second = begin(cache);
  EXPECT_EQ(cache.find_prefix(second, tokens, 29), 28);
  EXPECT_EQ(cache.find_prefix(second, tokens, 20), 20) << "what slid out is still known";
  std::vector<BlockCopy> copies;
  EXPECT_EQ(cache.attach(second, tokens, 29, 40, copies), 28);
  EXPECT_TRUE(copies.empty());
  EXPECT_EQ(second.tables[0].blocks()[3], first.tables[0].blocks()[3]);
  EXPECT_EQ(second.tables[1].num_released(), 5) << "the query at 28 reads keys from 23 on";
  EXPECT_EQ(cache.groups()[0].pool().references(first.tables[0].blocks()[0]), 2);
  cache.check_invariants();
}

TEST(KvCache, TheLastBlockGoesOnWhereNobodyElseWantsIt) {
  KvCache cache = two_groups();
  const auto tokens = counted(22);
  CachedTokens first = begin(cache);
  compute(cache, first, tokens, 22);
  const int32_t last = first.tables[0].blocks().back();
  cache.release(first, tokens, 22);
  CachedTokens second = begin(cache);
  std::vector<BlockCopy> copies;
  EXPECT_EQ(cache.attach(second, counted(26), 25, 40, copies), 22);
  EXPECT_TRUE(copies.empty());
  EXPECT_EQ(second.tables[0].blocks().back(), last);
  // Now it will be written: a third cannot find it any more.
  CachedTokens third = begin(cache);
  EXPECT_EQ(cache.attach(third, counted(26), 25, 40, copies), 20);
  cache.check_invariants();
}

TEST(KvCache, ABlockOfOthersIsCopiedWhereItsBeginningAgrees) {
  KvCache cache = two_groups();
  const auto tokens = counted(24);
  CachedTokens first = begin(cache);
  compute(cache, first, tokens, 24);
  auto other = tokens;
  other[22] = 999;
  CachedTokens second = begin(cache);
  std::vector<BlockCopy> copies;
  EXPECT_EQ(cache.attach(second, other, 23, 40, copies), 22);
  ASSERT_EQ(copies.size(), 2U) << "one a group";
  EXPECT_EQ(copies[0].from, first.tables[0].blocks()[5]);
  EXPECT_EQ(copies[0].to, second.tables[0].blocks()[5]);
  EXPECT_EQ(cache.groups()[0].pool().references(copies[0].from), 2) << "held until it is copied";
  cache.end_copies(copies);
  EXPECT_EQ(cache.groups()[0].pool().references(first.tables[0].blocks()[5]), 1);
  cache.check_invariants();
}

TEST(KvCache, WhereAWindowsBlocksAreGoneThePrefixIsShorter) {
  // The window group has few blocks: those of a prefix's end are used up by others.
  const std::vector<CacheGeometry> geometries{{kBlockTokens, 0}, {kBlockTokens, 6}};
  const std::vector<int64_t> blocks{64, 8};
  KvCache cache(geometries, blocks, {});
  const auto tokens = counted(40);
  CachedTokens first = begin(cache);
  compute(cache, first, tokens, 4);
  cache.release(first, tokens, 40);
  CachedTokens again = begin(cache);
  EXPECT_EQ(cache.find_prefix(again, tokens, 40), 40);
  EXPECT_EQ(cache.find_prefix(again, tokens, 16), 16) << "its window is still there";
  EXPECT_EQ(cache.find_prefix(again, tokens, 8), 0) << "of this one blocks were written over";
  CachedTokens other = begin(cache);
  compute(cache, other, counted(40, 500), 4);
  EXPECT_EQ(cache.find_prefix(again, tokens, 40), 0);
  EXPECT_GT(cache.groups()[1].num_evictions(), 0);
  cache.check_invariants();
}

TEST(KvCache, TwoThatComputeTheSameKeepOneBlock) {
  KvCache cache = two_groups();
  const auto tokens = counted(8);
  CachedTokens a = begin(cache);
  CachedTokens b = begin(cache);
  std::vector<BlockCopy> copies;
  cache.attach(a, tokens, 7, 16, copies);
  cache.attach(b, tokens, 7, 16, copies);
  ASSERT_TRUE(cache.grow(a, 8));
  ASSERT_TRUE(cache.grow(b, 8));
  EXPECT_NE(a.tables[0].blocks()[0], b.tables[0].blocks()[0]);
  cache.advance(a, tokens, 8);
  cache.advance(b, tokens, 8);
  EXPECT_EQ(a.tables[0].blocks()[0], b.tables[0].blocks()[0]);
  EXPECT_EQ(cache.groups()[0].pool().num_unreferenced(), 32 - 2);
  cache.check_invariants();
}

TEST(KvCache, GrowsInAllGroupsOrNone) {
  const std::vector<CacheGeometry> geometries{{kBlockTokens, 0}, {kBlockTokens, 6}};
  const std::vector<int64_t> blocks{8, 2};
  KvCache cache(geometries, blocks, {});
  CachedTokens cached = begin(cache);
  std::vector<BlockCopy> copies;
  cache.attach(cached, counted(32), 31, 32, copies);
  EXPECT_FALSE(cache.grow(cached, 12));
  EXPECT_EQ(cached.tables[0].num_held(), 0);
  EXPECT_EQ(cache.largest_growth(cached), 8);
  EXPECT_TRUE(cache.grow(cached, 8));
}

TEST(KvCache, WhoSharesNothingLeavesNothing) {
  KvCache cache = two_groups();
  const auto tokens = counted(22);
  CachedTokens alone = begin(cache);
  alone.shares_prefixes = false;
  compute(cache, alone, tokens, 22);
  cache.release(alone, tokens, 22);
  CachedTokens next = begin(cache);
  EXPECT_EQ(cache.find_prefix(next, tokens, 22), 0);
  EXPECT_EQ(cache.groups()[0].num_cached(), 0);
  CachedTokens elsewhere = begin(cache);
  compute(cache, next, tokens, 22);
  elsewhere.root = cache.root("another scope");
  EXPECT_EQ(cache.find_prefix(elsewhere, tokens, 22), 0);
}

TEST(KvCache, CopiesThatWereNotMadeAreNotKnown) {
  KvCache cache = two_groups();
  const auto tokens = counted(24);
  CachedTokens first = begin(cache);
  compute(cache, first, tokens, 24);
  auto other = tokens;
  other[22] = 999;
  CachedTokens second = begin(cache);
  std::vector<BlockCopy> copies;
  const int64_t found = cache.attach(second, other, 23, 40, copies);
  cache.release(second, other,
                found);  // it gives up before the step, with a part in its last block
  cache.abandon_copies(copies);
  CachedTokens third = begin(cache);
  EXPECT_EQ(cache.attach(third, other, 23, 40, copies), 22);
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(copies[0].from, first.tables[0].blocks()[5]) << "not of the one that was never filled";
  cache.end_copies(copies);
  cache.check_invariants();
}

}  // namespace
}  // namespace headrace
