#include "app/load/workload.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "app/load/test_load_spec.h"

namespace headrace {
namespace {

using test::load_spec;

std::vector<TokenId> vocabulary_of_900() {
  std::vector<TokenId> ids(900);
  std::iota(ids.begin(), ids.end(), 100);
  return ids;
}

uint64_t fingerprint(const LoadSpec& spec, int64_t index) {
  return load_fingerprint(LoadWorkload(spec, vocabulary_of_900()).conversation(index));
}

TEST(LoadWorkload, IsAFunctionOfItsSeed) {
  LoadSpec spec = load_spec("10..40", "5..9");
  EXPECT_EQ(fingerprint(spec, 3), fingerprint(spec, 3));
  EXPECT_NE(fingerprint(spec, 3), fingerprint(spec, 4));
  LoadSpec other = spec;
  other.seed = 6;
  EXPECT_NE(fingerprint(spec, 3), fingerprint(other, 3));
  // These must never change: a workload is named by its seed.
  EXPECT_EQ(fingerprint(spec, 0), 10908917735409513401U);
  EXPECT_EQ(LoadWorkload(spec, vocabulary_of_900()).sampling_seed(1, 0), 4153018707267165471U);
}

TEST(LoadWorkload, LengthsAndTokensAreThoseAsked) {
  const LoadSpec spec = load_spec("10..40", "5..9");
  const LoadWorkload workload(spec, vocabulary_of_900());
  std::set<size_t> lengths;
  std::set<TokenId> tokens;
  for (int64_t i = 0; i < 200; ++i) {
    const auto turns = workload.conversation(i);
    ASSERT_EQ(turns.size(), 1U);
    EXPECT_GE(turns[0].tokens.size(), 10U);
    EXPECT_LE(turns[0].tokens.size(), 40U);
    EXPECT_GE(turns[0].num_output, 5);
    EXPECT_LE(turns[0].num_output, 9);
    lengths.insert(turns[0].tokens.size());
    tokens.insert(turns[0].tokens.begin(), turns[0].tokens.end());
  }
  EXPECT_EQ(lengths.size(), 31U);
  EXPECT_GE(*tokens.begin(), 100);
  EXPECT_LT(*tokens.rbegin(), 1000);
  EXPECT_GT(tokens.size(), 850U);
}

TEST(LoadWorkload, PrefixesAreSharedAndTailsAreNot) {
  LoadSpec spec = load_spec("8", "1");
  spec.prefix_tokens = 30;
  spec.num_prefixes = 3;
  const LoadWorkload workload(spec, vocabulary_of_900());
  std::set<std::vector<TokenId>> prefixes, tails, warm_prefixes;
  for (int64_t i = 0; i < 60; ++i) {
    const auto prompt = workload.conversation(i).front().tokens;
    ASSERT_EQ(prompt.size(), 38U);
    prefixes.insert({prompt.begin(), prompt.begin() + 30});
    tails.insert({prompt.begin() + 30, prompt.end()});
    const auto warm = workload.conversation(LoadWorkload::kWarmUp + i).front().tokens;
    warm_prefixes.insert({warm.begin(), warm.begin() + 30});
  }
  EXPECT_EQ(prefixes.size(), 3U);
  EXPECT_EQ(tails.size(), 60U);
  EXPECT_EQ(warm_prefixes.size(), 3U);
  for (const auto& prefix : warm_prefixes) EXPECT_EQ(prefixes.count(prefix), 0U);
}

TEST(LoadWorkload, TurnsHaveTheirOwnTokens) {
  LoadSpec spec = load_spec("8", "4");
  spec.prefix_tokens = 10;
  spec.num_turns = 3;
  const auto turns = LoadWorkload(spec, vocabulary_of_900()).conversation(2);
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[0].tokens.size(), 18U);
  EXPECT_EQ(turns[1].tokens.size(), 8U);
  EXPECT_NE(turns[1].tokens, turns[2].tokens);
  EXPECT_EQ(spec.longest(), 10 + 3 * 12);
  EXPECT_DOUBLE_EQ(spec.mean_prompt(), 10 + 8 + 12);  // 18, 30 and 42
}

TEST(LoadWorkload, ArrivalsAreAPoissonProcess) {
  const LoadWorkload workload(load_spec("1", "1"), vocabulary_of_900());
  EXPECT_EQ(workload.gap(0), 0);
  double sum = 0;
  int longer = 0;
  constexpr int kCount = 20000;
  for (int i = 1; i <= kCount; ++i) {
    const double gap = workload.gap(i);
    EXPECT_GE(gap, 0);
    sum += gap;
    longer += gap > 1 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 1, 0.03);
  EXPECT_NEAR(1.0 * longer / kCount, std::exp(-1), 0.01);
}

}  // namespace
}  // namespace headrace
