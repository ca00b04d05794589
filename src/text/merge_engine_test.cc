#include "text/merge_engine.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace headrace::text {
namespace {

// Merges as a map, and the plain definition: join the best pair, leftmost first, until none is
// left.
using Rules = std::map<std::pair<int32_t, int32_t>, Joined>;

std::vector<int32_t> merge_plainly(std::vector<int32_t> ids, const Rules& rules) {
  for (;;) {
    Joined best;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rules.find({ids[i], ids[i + 1]});
      if (found != rules.end() && found->second.rank < best.rank) {
        best = found->second;
        at = i;
      }
    }
    if (best.rank == kNoRank) return ids;
    ids[at] = best.id;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

std::vector<int32_t> merge_by_engine(MergeEngine& engine, const std::vector<int32_t>& ids,
                                     const Rules& rules) {
  engine.symbols().clear();
  for (uint32_t i = 0; i < ids.size(); ++i) engine.symbols().push_back({ids[i], i, i + 1});
  engine.merge([&](const Symbol& left, const Symbol& right) {
    const auto found = rules.find({left.id, right.id});
    return found == rules.end() ? Joined{} : found->second;
  });
  std::vector<int32_t> out;
  uint32_t end = 0;
  for (const Symbol& symbol : engine.symbols()) {
    EXPECT_EQ(symbol.begin, end);
    end = symbol.end;
    out.push_back(symbol.id);
  }
  EXPECT_EQ(end, ids.size());
  return out;
}

TEST(MergeEngine, EqualsThePlainDefinitionForAnyRules) {
  std::mt19937 random(7);
  MergeEngine engine;  // one engine, so that scratch memory left from a word would show
  for (int round = 0; round < 3000; ++round) {
    // Ranks in no sensible order: a pair may come to be whose rank precedes the one at work.
    Rules rules;
    int32_t next = 3;
    const int num_rules = 2 + static_cast<int>(random() % 30);
    std::vector<uint32_t> ranks(static_cast<size_t>(num_rules));
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<uint32_t>(i);
    std::shuffle(ranks.begin(), ranks.end(), random);
    for (const uint32_t rank : ranks) {
      const auto a = static_cast<int32_t>(random() % static_cast<uint32_t>(next));
      const auto b = static_cast<int32_t>(random() % static_cast<uint32_t>(next));
      rules.emplace(std::pair(a, b), Joined{rank, next++});
    }
    std::vector<int32_t> word(random() % 120);
    for (int32_t& id : word) id = static_cast<int32_t>(random() % (1 + random() % 3));
    ASSERT_EQ(merge_by_engine(engine, word, rules), merge_plainly(word, rules)) << round;
  }
}

TEST(MergeEngine, TiesGoToTheLeft) {
  MergeEngine engine;
  const Rules rules = {{{0, 0}, {0, 1}}};
  EXPECT_EQ(merge_by_engine(engine, {0, 0, 0}, rules), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(merge_by_engine(engine, {}, rules), std::vector<int32_t>{});
  EXPECT_EQ(merge_by_engine(engine, {0}, rules), std::vector<int32_t>{0});
}

TEST(MergeEngine, EqualRanksOfDifferentPairsGoLeftToRight) {
  // SentencePiece: two pieces of equal score.
  const Rules rules = {{{0, 1}, {5, 7}}, {{1, 0}, {5, 8}}};
  MergeEngine engine;
  for (const size_t n : {size_t{5}, size_t{99}}) {
    std::vector<int32_t> word;
    for (size_t i = 0; i < n; ++i) word.push_back(i % 2 == 0 ? 1 : 0);
    EXPECT_EQ(merge_by_engine(engine, word, rules), merge_plainly(word, rules));
  }
}

}  // namespace
}  // namespace headrace::text
