#include "text/merge_word.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace headrace::text {
namespace {

using Ids = std::vector<int32_t>;
using Rules = std::map<std::pair<int32_t, int32_t>, Joined>;

auto join_by(const Rules& rules) {
  return [&rules](const Symbol& left, const Symbol& right) {
    const auto found = rules.find({left.id, right.id});
    return found == rules.end() ? Joined{} : found->second;
  };
}

// Symbol i of a word is its bytes [2 i, 2 i + 2).
Ids merge_whole(MergeEngine& engine, const Ids& word, const Rules& rules) {
  engine.symbols().clear();
  for (uint32_t i = 0; i < word.size(); ++i)
    engine.symbols().push_back({word[i], 2 * i, 2 * i + 2});
  engine.merge(join_by(rules));
  Ids out;
  for (const Symbol& symbol : engine.symbols()) out.push_back(symbol.id);
  return out;
}

struct Counts {
  int windows = 0;
  int restarts = 0;
};

Ids merge_in_windows(MergeEngine& engine, const Ids& word, const Rules& rules, Counts& counts,
                     size_t window, size_t longest = kMaxMergeWindow) {
  Ids out;
  size_t from = 0;
  uint32_t num_bytes = 0;
  const auto fill = [&](size_t skip, size_t limit) {
    ++counts.windows;
    EXPECT_EQ(skip % 2, 0U);
    from += skip / 2;
    engine.symbols().clear();
    const size_t n = std::min(limit, word.size() - from);
    for (uint32_t i = 0; i < n; ++i) {
      engine.symbols().push_back({word[from + i], 2 * i, 2 * i + 2});
    }
    return from + n == word.size();
  };
  const auto emit = [&](std::span<const Symbol> tokens) {
    for (const Symbol& token : tokens) {
      out.push_back(token.id);
      num_bytes += token.end - token.begin;
    }
  };
  const auto restart = [&] {
    ++counts.restarts;
    out.clear();
    from = num_bytes = 0;
  };
  merge_word(engine, fill, join_by(rules), emit, restart, window, longest);
  EXPECT_EQ(num_bytes, 2 * word.size());
  return out;
}

// `in_order`: as trained, a rule comes after those that make its parts. Otherwise a pair may come
// to be whose rank precedes the one at work. Some ranks are equal, as SentencePiece's may be.
Rules random_rules(std::mt19937& random, uint32_t num_rules, bool in_order) {
  std::vector<uint32_t> ranks(num_rules);
  for (uint32_t i = 0; i < num_rules; ++i) ranks[i] = i - (random() % 4 == 0 ? i % 3 : 0);
  if (!in_order) std::shuffle(ranks.begin(), ranks.end(), random);
  Rules rules;
  int32_t next = 3;
  for (const uint32_t rank : ranks) {
    const auto a = static_cast<int32_t>(random() % static_cast<uint32_t>(next));
    const auto b = static_cast<int32_t>(random() % static_cast<uint32_t>(next));
    rules.emplace(std::pair(a, b), Joined{rank, next++});
  }
  return rules;
}

Ids random_word(std::mt19937& random, size_t size) {
  const size_t num_ids = 1 + random() % 3;
  Ids word(size);
  for (int32_t& id : word) id = static_cast<int32_t>(random() % num_ids);
  return word;
}

TEST(MergeWord, SmallWindowsEqualTheWholeForAnyRules) {
  std::mt19937 random(11);
  MergeEngine engine;
  Counts counts;
  int kept = 0;  // words done in several windows, none of them in vain
  for (int round = 0; round < 20000; ++round) {
    const Rules rules =
        random_rules(random, 1 + static_cast<uint32_t>(random() % 30), round % 2 == 0);
    const Ids word = random_word(random, random() % 400);
    const Counts before = counts;
    const Ids windows = merge_in_windows(engine, word, rules, counts, size_t{2} << (random() % 5));
    ASSERT_EQ(windows, merge_whole(engine, word, rules)) << round;
    kept += counts.restarts == before.restarts && counts.windows > before.windows + 1 ? 1 : 0;
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(counts.restarts, 1000);
}

TEST(MergeWord, LongRunsEqualTheWhole) {
  std::mt19937 random(12);
  MergeEngine engine;
  Counts counts;
  for (int round = 0; round < 40; ++round) {
    const Rules rules = random_rules(random, 200, round % 2 == 0);
    Ids word = random_word(random, 50'000 + random() % 50'000);
    if (round % 4 < 2) {  // one unit over and over
      const size_t period = 1 + random() % 40;
      for (size_t i = period; i < word.size(); ++i) word[i] = word[i - period];
    }
    ASSERT_EQ(merge_in_windows(engine, word, rules, counts, kMergeWindow),
              merge_whole(engine, word, rules))
        << round;
  }
  EXPECT_GT(counts.windows, 40 * 3);
}

TEST(MergeWord, WhatIsFarToTheRightMayDecide) {
  // 0 1 2 ... 99: every pair of neighbours joins, the rightmost first, so the parity of the length
  // decides how the word begins.
  Rules rules;
  for (int32_t i = 0; i + 1 < 100; ++i) {
    rules[{i, i + 1}] = {static_cast<uint32_t>(100 - i), 1000 + i};
  }
  MergeEngine engine;
  for (int32_t n : {99, 100}) {
    Ids word(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) word[static_cast<size_t>(i)] = i;
    Counts counts;
    const Ids ids = merge_in_windows(engine, word, rules, counts, 8);
    EXPECT_EQ(ids.front(), n % 2 == 0 ? 1000 : 0);
    EXPECT_EQ(ids, merge_whole(engine, word, rules));
  }
}

TEST(MergeWord, IsCutAtTheLongestWindow) {
  const Rules rules = {{{0, 0}, {0, 1}}, {{1, 1}, {1, 2}}, {{2, 2}, {2, 3}}};
  MergeEngine engine;
  Counts counts;
  EXPECT_EQ(merge_in_windows(engine, Ids(14, 0), rules, counts, 2, 4), (Ids{2, 2, 2, 1}));
}

TEST(MergeWord, OfNothingIsNothing) {
  MergeEngine engine;
  Counts counts;
  EXPECT_EQ(merge_in_windows(engine, {}, {}, counts, 2), Ids{});
}

}  // namespace
}  // namespace headrace::text
