#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_edits.h"

namespace headrace {
namespace {

std::shared_ptr<const std::vector<TokenId>> breakers_of(std::vector<TokenId> ids) {
  return std::make_shared<const std::vector<TokenId>>(std::move(ids));
}

/// The length of the longest repeat that each token would go on with, by comparing every place of
/// the history with its end.
std::map<TokenId, int64_t> plain_repeats(const SamplingParams& params,
                                         std::vector<TokenId> history) {
  const auto last_n = static_cast<size_t>(params.dry_penalty_last_n);
  if (params.dry_penalty_last_n >= 0 && last_n < history.size()) {
    history.erase(history.begin(), history.end() - params.dry_penalty_last_n);
  }
  const auto is_breaker = [&](TokenId id) {
    const auto& ids = params.dry_breakers;
    return ids != nullptr && std::find(ids->begin(), ids->end(), id) != ids->end();
  };
  std::map<TokenId, int64_t> out;
  const int64_t size = std::ssize(history);
  for (int64_t at = 0; at + 1 < size; ++at) {
    int64_t length = 0;
    while (length <= at) {
      const TokenId here = history[static_cast<size_t>(at - length)];
      if (here != history[static_cast<size_t>(size - 1 - length)] || is_breaker(here)) break;
      ++length;
    }
    const TokenId next = history[static_cast<size_t>(at + 1)];
    if (length == 0 || length < params.dry_allowed_length || is_breaker(next)) continue;
    out[next] = std::max(out[next], length);
  }
  return out;
}

class Dry : public testing::Test {
 protected:
  std::map<TokenId, float> penalties(const SamplingParams& params,
                                     const std::vector<TokenId>& history) {
    edits_.clear();
    edits_.begin_row();
    apply_dry(params, history, edits_);
    std::map<TokenId, float> out;
    for (const LogitEdit& edit : edits_.current_row()) {
      EXPECT_EQ(edit.original, 0) << "a note of the step's own";
      out[edit.id] = edit.penalty;
    }
    return out;
  }
  LogitEdits edits_;
};

using DryPenalties = std::map<TokenId, float>;

TEST_F(Dry, GrowsWithTheLengthOfTheRepeat) {
  const SamplingParams params{.dry_multiplier = 0.5F, .dry_base = 2.0F, .dry_allowed_length = 2};
  EXPECT_EQ(penalties(params, {1, 2, 3, 9, 2}), DryPenalties{}) << "one token alone is allowed";
  EXPECT_EQ(penalties(params, {1, 2, 3, 9, 1, 2}), (DryPenalties{{3, 0.5F}}));
  EXPECT_EQ(penalties(params, {7, 1, 2, 3, 9, 7, 1, 2}), (DryPenalties{{3, 1.0F}}));
  EXPECT_EQ(penalties(params, {7, 1, 2, 3, 9, 1, 2, 4, 7, 1, 2}),
            (DryPenalties{{3, 1.0F}, {4, 0.5F}}));
  EXPECT_EQ(penalties(params, {5, 5, 5, 5}), (DryPenalties{{5, 1.0F}})) << "a repeat may overlap";
}

TEST_F(Dry, BreakersCutRepeats) {
  SamplingParams params{.dry_multiplier = 1.0F, .dry_base = 2.0F, .dry_allowed_length = 1};
  const std::vector<TokenId> history = {1, 2, 3, 9, 1, 2};
  EXPECT_EQ(penalties(params, history), (DryPenalties{{3, 2.0F}}));
  params.dry_breakers = breakers_of({1});
  EXPECT_EQ(penalties(params, history), (DryPenalties{{3, 1.0F}})) << "2 is all that repeats";
  params.dry_breakers = breakers_of({2});
  EXPECT_EQ(penalties(params, history), DryPenalties{}) << "the last token is one";
  params.dry_breakers = breakers_of({3});
  EXPECT_EQ(penalties(params, history), DryPenalties{}) << "what would come next is one";
}

TEST_F(Dry, LooksBackNoFartherThanItShould) {
  SamplingParams params{.dry_multiplier = 1.0F, .dry_base = 2.0F, .dry_allowed_length = 1};
  const std::vector<TokenId> history = {1, 2, 3, 9, 1, 2};
  for (const int32_t last_n : {0, 1, 2, 3, 4}) {
    params.dry_penalty_last_n = last_n;
    EXPECT_EQ(penalties(params, history), DryPenalties{}) << last_n;
  }
  params.dry_penalty_last_n = 5;
  EXPECT_EQ(penalties(params, history), (DryPenalties{{3, 1.0F}})) << "2 is, 1 is not seen";
  params.dry_penalty_last_n = 6;
  EXPECT_EQ(penalties(params, history), (DryPenalties{{3, 2.0F}}));
}

TEST_F(Dry, ShortHistoriesHaveNoRepeats) {
  const SamplingParams params{.dry_multiplier = 1.0F, .dry_allowed_length = 0};
  EXPECT_EQ(penalties(params, {}), DryPenalties{});
  EXPECT_EQ(penalties(params, {1}), DryPenalties{});
  EXPECT_EQ(penalties(params, {1, 2}), DryPenalties{});
  EXPECT_EQ(penalties(params, {1, 1}), (DryPenalties{{1, 1.75F}}));
}

TEST_F(Dry, NoPenaltyIsInfinite) {
  const std::vector<TokenId> history(5000, 3);
  for (const float base : {1.0F, 1.0000001F, 1.75F, 1e9F}) {
    for (const float multiplier : {1e-45F, 0.8F, 1e9F}) {
      for (const int32_t allowed : {0, 2, 4999, 2147483647}) {
        const SamplingParams params{
            .dry_multiplier = multiplier, .dry_base = base, .dry_allowed_length = allowed};
        for (const auto& [id, penalty] : penalties(params, history)) {
          EXPECT_TRUE(std::isfinite(penalty) && penalty >= 0) << base << " " << multiplier;
        }
      }
    }
  }
  const SamplingParams params{.dry_multiplier = 0.8F};
  EXPECT_EQ(penalties(params, history), (DryPenalties{{3, 1e9F}}));
}

TEST_F(Dry, AddsToWhatThePenaltiesTook) {
  const SamplingParams params{
      .presence_penalty = 0.25F, .dry_multiplier = 0.5F, .dry_base = 2.0F, .dry_allowed_length = 1};
  const std::vector<TokenId> history = {0, 1, 0};
  edits_.begin_row();
  apply_penalties(params, {history, 0}, edits_);
  apply_dry(params, history, edits_);
  EXPECT_EQ(edited({4, 4, 4}, edits_), (std::vector<float>{3.75F, 3.25F, 4}));
}

TEST_F(Dry, IsThatOfThePlainSearch) {
  std::mt19937 random(11);
  const auto below = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  for (int round = 0; round < 20000; ++round) {
    SamplingParams params{.dry_multiplier = 0.5F};
    params.dry_base = std::vector<float>{1.0F, 1.01F, 1.75F, 40.0F}[random() % 4];
    params.dry_allowed_length = below(5);
    params.dry_penalty_last_n = below(3) > 0 ? -1 : 1 + below(60);
    std::vector<TokenId> breakers;
    for (TokenId id = 0; id < 5; ++id) {
      if (below(6) == 0) breakers.push_back(id);
    }
    if (below(2) == 0) params.dry_breakers = breakers_of(breakers);
    std::vector<TokenId> history(random() % 80);
    const auto num_ids = static_cast<uint32_t>(1 + random() % 5);
    for (TokenId& id : history) id = below(num_ids);
    DryPenalties expected;
    for (const auto& [id, length] : plain_repeats(params, history)) {
      const double grown = std::pow(double{params.dry_base},
                                    static_cast<double>(length - params.dry_allowed_length));
      expected[id] = static_cast<float>(std::min(1e9, 0.5 * grown));
    }
    ASSERT_EQ(penalties(params, history), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace headrace
