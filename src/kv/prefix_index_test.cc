#include "kv/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/check.h"
#include "kv/test_tokens.h"

namespace headrace {
namespace {

using test::counted;
using test::kBlockTokens;

BlockHasher hasher() {
  BlockHasher::Key key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = 77 * i + 5;
  return BlockHasher(key);
}

std::vector<TokenId> block_from(TokenId first, size_t count = kBlockTokens) {
  return counted(count, first);
}

TEST(BlockHasher, TellsScopesFingerprintsAndOrderApart) {
  const BlockHasher hash = hasher();
  const BlockHash root = hash.root("model", "scope");
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const auto add = [&](const BlockHash& one) { return seen.insert({one.low, one.high}).second; };
  EXPECT_TRUE(add(root));
  EXPECT_TRUE(add(hash.root("modelscope", "")));
  EXPECT_TRUE(add(hash.root("", "modelscope")));
  EXPECT_TRUE(add(hash.root("models", "cope")));
  EXPECT_TRUE(add(hash.next(root, block_from(1))));
  EXPECT_TRUE(add(hash.next(root, block_from(1, 3))));
  EXPECT_TRUE(add(hash.next(hash.next(root, block_from(1)), block_from(5))));
  EXPECT_TRUE(add(hash.next(hash.next(root, block_from(5)), block_from(1))));
  EXPECT_EQ(hash.root("model", "scope"), root);
  BlockHasher::Key other_key{};
  EXPECT_TRUE(add(BlockHasher(other_key).root("model", "scope"))) << "a hash needs the key";
}

TEST(PrefixIndex, FindsFullBlocksByAllThatIsBeforeThem) {
  PrefixIndex index(8, kBlockTokens);
  const BlockHasher hash = hasher();
  const BlockHash root = hash.root("", "");
  const BlockHash first = hash.next(root, block_from(1));
  EXPECT_EQ(index.find(first, root, block_from(1)), -1);
  EXPECT_EQ(index.insert(3, first, root, block_from(1)), 3);
  EXPECT_EQ(index.insert(5, first, root, block_from(1)), 3) << "known already";
  EXPECT_EQ(index.find(first, root, block_from(1)), 3);
  EXPECT_EQ(index.find(first, root, block_from(2)), -1) << "a hash alone is not enough";
  EXPECT_EQ(index.find(first, first, block_from(1)), -1) << "nor without what is before it";
  EXPECT_EQ(index.num_entries(), 1);
  index.erase(3);
  EXPECT_EQ(index.find(first, root, block_from(1)), -1);
  index.erase(3);
  EXPECT_EQ(index.num_entries(), 0);
  index.check_invariants();
}

TEST(PrefixIndex, FindsTheLongestBeginning) {
  PrefixIndex index(8, kBlockTokens);
  const BlockHash root = hasher().root("", "");
  EXPECT_TRUE(index.insert_part(0, root, block_from(1, 2)));
  EXPECT_FALSE(index.insert_part(1, root, block_from(1, 1))) << "begins a known one";
  EXPECT_TRUE(index.insert_part(1, root, block_from(1, 3)));
  EXPECT_EQ(index.insert(2, hasher().next(root, block_from(9)), root, block_from(9)), 2);
  const auto match = index.find_beginning(root, block_from(1));
  EXPECT_EQ(match.block, 1);
  EXPECT_EQ(match.num_tokens, 3);
  EXPECT_EQ(index.find_beginning(root, block_from(9, 2)).block, 2) << "full ones count too";
  EXPECT_EQ(index.find_beginning(root, block_from(20)).block, -1);
  EXPECT_EQ(index.find_beginning(hasher().root("", "x"), block_from(1)).block, -1);
  EXPECT_TRUE(index.is_part(1));
  EXPECT_FALSE(index.is_part(2));
  index.check_invariants();
}

// Against a plain map, with few buckets and many equal parents.
TEST(PrefixIndex, RandomTraceFollowsThePlainModel) {
  constexpr int32_t kBlocks = 40;
  PrefixIndex index(kBlocks, kBlockTokens);
  const BlockHasher hash = hasher();
  std::map<std::vector<TokenId>, int32_t> known;  // full blocks, by all their tokens
  std::map<int32_t, std::vector<TokenId>> held;
  std::mt19937 random(5);
  for (int step = 0; step < 20000; ++step) {
    const auto block = static_cast<int32_t>(random() % kBlocks);
    std::vector<TokenId> before;
    if (random() % 2 == 0) before = block_from(static_cast<TokenId>(random() % 2));
    const auto own = block_from(static_cast<TokenId>(random() % 12));
    BlockHash parent = hash.root("", "");
    if (!before.empty()) parent = hash.next(parent, before);
    std::vector<TokenId> all = before;
    all.insert(all.end(), own.begin(), own.end());
    const BlockHash full = hash.next(parent, own);
    const auto at = known.find(all);
    ASSERT_EQ(index.find(full, parent, own), at == known.end() ? -1 : at->second);
    switch (random() % 3) {
      case 0:
        if (index.contains(block)) break;
        index.insert(block, full, parent, own);
        if (known.emplace(all, block).second) held[block] = all;
        break;
      case 1:
        if (index.contains(block)) break;
        index.insert_part(block, parent, std::span(own).first(1 + random() % 3));
        break;
      default:
        index.erase(block);
        if (const auto it = held.find(block); it != held.end()) {
          known.erase(it->second);
          held.erase(it);
        }
    }
    if (step % 100 == 0) index.check_invariants();
  }
}

}  // namespace
}  // namespace headrace
