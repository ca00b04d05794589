#include "sampling/chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sampling/test_chain.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using test::kInf;

TEST(Chain, KnowsHowManyLogitsDecide) {
  const auto num_decisive = [](const Request& request) {
    const std::vector<TokenId> tokens = {0, 1};
    return Chain(request, {7}, 1, 0).num_decisive({tokens, 1});
  };
  EXPECT_EQ(num_decisive(greedy()), 1);
  Request request = greedy();
  request.sampling.logit_bias = {{3, 10.0F}};
  EXPECT_EQ(num_decisive(request), 0);
  request = greedy();
  request.sampling.repetition_penalty = 1.1F;
  EXPECT_EQ(num_decisive(request), 0);
  request = greedy();
  request.num_logprobs = 0;
  EXPECT_EQ(num_decisive(request), 0);
  request = greedy();
  request.stop.min_tokens = 5;
  EXPECT_EQ(num_decisive(request), 0);

  request = greedy();
  request.sampling.temperature = 0.7F;
  request.sampling.top_k = 40;
  for (const float typical : {1.0F, 0.9F}) {
    request.sampling.typical_p = typical;
    EXPECT_EQ(num_decisive(request), 40);
  }
  request.sampling.top_k = kMaxTopLogits + 1;
  EXPECT_EQ(num_decisive(request), 0);
  request.sampling = {};
  request.sampling.temperature = 0.7F;
  request.sampling.top_k = 0;
  for (const float top_p : {1.0F, 0.9F}) {
    request.sampling.top_p = top_p;
    EXPECT_EQ(num_decisive(request), 0);
  }
}

TEST_F(ChainTest, GreedyTakesTheLargestTiesToTheSmallerId) {
  EXPECT_EQ(choose(greedy(), {1, 7, 7, 2})->id, 1);
}

TEST_F(ChainTest, GreedyHonoursBiasPenaltiesAndMasks) {
  Request request = greedy();
  request.sampling.logit_bias = {{3, 10.0F}};
  EXPECT_EQ(choose(request, {1, 7, 7, 2})->id, 3);

  request = greedy();
  request.sampling.repetition_penalty = 10;
  EXPECT_EQ(choose(request, {1, 7, 6, 2}, {0, 1})->id, 2);

  request = greedy();
  request.stop.min_tokens = 2;
  EXPECT_EQ(choose(request, {1, 7, 6, 2}, {0, 3}, 1, {1})->id, 2) << "one token so far";
  EXPECT_EQ(choose(request, {1, 7, 6, 2}, {0, 3, 3}, 1, {1})->id, 1);
}

TEST_F(ChainTest, AsksForNoMoreThanItNeeds) {
  const std::vector<TokenId> tokens = {0, 1, 2};
  LogitEdits edits;
  const auto ask = [&](const Request& request) {
    edits.clear();
    return Chain(request, {1}, 0, 0).ask({tokens, 1}, edits);
  };
  Request request = greedy();
  RowQuery query = ask(request);
  EXPECT_TRUE(edits.row(0).empty());
  EXPECT_FALSE(query.wants_log_sum_exp);
  EXPECT_EQ(query.num_top, 0);
  EXPECT_EQ(query.temperature, 0);

  request.stop.min_tokens = 2;
  ask(request);
  EXPECT_TRUE(edits.row(0).empty()) << "it has two";
  request.stop.min_tokens = 3;
  ask(request);
  EXPECT_EQ(edits.row(0).size(), 1U);
  request.sampling.frequency_penalty = 0.1F;
  ask(request);
  EXPECT_EQ(edits.row(0).size(), 2U) << "two tokens of the completion, one of them masked";

  request = greedy();
  request.num_logprobs = 3;
  query = ask(request);
  EXPECT_TRUE(query.wants_log_sum_exp);
  EXPECT_EQ(query.num_model_top, 3);

  request = {};
  request.sampling.temperature = 0.5F;
  query = ask(request);
  EXPECT_EQ(query.temperature, 0.5F);
  EXPECT_GE(query.draw, 0);
  EXPECT_EQ(query.num_top, 0);
  request.sampling.top_p = 0.9F;
  query = ask(request);
  EXPECT_EQ(query.temperature, 0.5F);
  EXPECT_LT(query.draw, 0);
  EXPECT_EQ(query.num_top, kMaxTopLogits);
  request.sampling.top_k = 40;
  query = ask(request);
  EXPECT_EQ(query.temperature, 0) << "the weight of all tokens does not matter";
  EXPECT_EQ(query.num_top, 40);
}

TEST_F(ChainTest, BrokenLogitsAreErrorsNeverTokens) {
  for (const float temperature : {0.0F, 0.8F}) {
    Request request = greedy();
    request.sampling.temperature = temperature;
    EXPECT_FALSE(choose(request, {0, NAN, 1}).ok());
    EXPECT_FALSE(choose(request, {0, kInf, 1}).ok());
    EXPECT_FALSE(choose(request, {-kInf, -kInf, -kInf}).ok());
    request.stop.min_tokens = 1;
    const auto masked = choose(request, {1, -kInf, -kInf}, {0}, 1, {0});
    ASSERT_FALSE(masked.ok());
    EXPECT_EQ(masked.error().code, ErrorCode::invalid_argument) << "the request is at fault";
  }
}

// Temperature 0.0001 works, and is greedy in effect.
TEST_F(ChainTest, TinyTemperature) {
  Request request = greedy();
  request.sampling.temperature = 1e-4F;
  request.sampling.top_p = 1e-4F;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(choose(request, {10, 90.5F, 90, -30}, {0}, seed)->id, 1);
  }
}

TEST_F(ChainTest, LogprobsAreThoseOfTheModel) {
  Request request = greedy();
  request.num_logprobs = 2;
  request.sampling.logit_bias = {{0, 100.0F}};
  const auto token = choose(request, {0, 2, 1});
  ASSERT_TRUE(token.ok());
  const double sum = std::log(1 + std::exp(2.0) + std::exp(1.0));
  EXPECT_EQ(token->id, 0);
  EXPECT_NEAR(token->logprob, -sum, 1e-6);
  ASSERT_EQ(token->top.size(), 2U);
  EXPECT_EQ(token->top[0].id, 1);
  EXPECT_NEAR(token->top[0].logprob, 2 - sum, 1e-6);
}

TEST_F(ChainTest, DrawDependsOnSeedAndPositionOnly) {
  Request request;
  request.prompt = {0};
  const std::vector<float> logits(1000, 0.0F);
  const auto first = choose(request, logits, {0, 1, 2}, 5)->id;
  EXPECT_EQ(choose(request, logits, {0, 9, 9}, 5)->id, first);
  EXPECT_NE(choose(request, logits, {0, 1, 2, 3}, 5)->id, first);
  EXPECT_NE(choose(request, logits, {0, 1, 2}, 6)->id, first);
}

TEST_F(ChainTest, StepsCombine) {
  Request request;
  request.prompt = {0};
  request.sampling.top_k = 3;
  request.sampling.top_p = 0.8F;
  request.sampling.min_p = 0.05F;
  request.sampling.typical_p = 0.99F;
  request.sampling.temperature = 0.7F;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const auto id = choose(request, {3, 0, 2.5F, 2, 1.9F}, {0}, seed)->id;
    EXPECT_TRUE(id == 0 || id == 2 || id == 3) << id;
  }
}

// Typical-p drops the most likely token here; min-p must not drop the rest.
TEST_F(ChainTest, MinPAfterTypicalPLeavesAToken) {
  Request request;
  request.prompt = {0};
  request.sampling.typical_p = 0.15F;
  request.sampling.min_p = 0.5F;
  std::vector<float> logits;
  for (const float p : {0.6F, 0.2F, 0.1F, 0.1F}) logits.push_back(std::log(p));
  EXPECT_EQ(choose(request, logits)->id, 1);
}

TEST_F(ChainTest, AnyParametersChooseATokenOfNonzeroProbability) {
  std::mt19937 random(7);
  const auto pick = [&](const std::vector<float>& values) {
    return values[random() % values.size()];
  };
  const std::vector<float> shares = {1e-45F, 1e-6F, 0.05F, 0.2F, 0.5F, 0.9F, 0.99999994F, 1.0F};
  for (int round = 0; round < 20000; ++round) {
    Request request;
    request.prompt = {0};
    request.sampling.temperature = pick({1e-45F, 1e-3F, 0.3F, 1.0F, 1.0F, 4.0F, 1e30F});
    request.sampling.top_k = static_cast<int32_t>(random() % 12);
    request.sampling.typical_p = pick(shares);
    request.sampling.top_p = pick(shares);
    request.sampling.min_p = random() % 4 == 0 ? 0.0F : pick(shares);
    request.sampling.xtc_probability = pick({0.0F, 0.0F, 0.5F, 1.0F});
    request.sampling.xtc_threshold = pick({0.0F, 0.1F, 0.5F, 1.0F});
    request.sampling.mirostat = random() % 3 == 0 ? static_cast<int32_t>(random() % 3) : 0;
    request.sampling.mirostat_tau = pick({0.0F, 1.0F, 5.0F, 1000.0F});
    const float spread = pick({0.0F, 0.1F, 3.0F, 30.0F, 900.0F, 1e30F});
    std::vector<float> logits(1 + random() % 40);
    for (float& one : logits) {
      one = spread * (static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
      if (random() % 8 == 0) one = -kInf;
    }
    logits[random() % logits.size()] = spread;
    ASSERT_TRUE(validate(request.sampling, request.stop, std::ssize(logits)).ok());
    const auto token = choose(request, logits, {0}, random());
    ASSERT_TRUE(token.ok()) << token.error().to_string();
    ASSERT_GE(token->id, 0);
    ASSERT_LT(token->id, std::ssize(logits));
    const float distance = (logits[static_cast<size_t>(token->id)] - spread);
    ASSERT_GT(std::exp(static_cast<double>(distance / request.sampling.temperature)), 0.0)
        << "round " << round;
  }
}

// The frequencies of 200 000 draws against the probabilities: chi-square with 5 degrees of freedom
// is above 20.5 once in a thousand tries; the seeds are fixed, so that this is no matter of luck.
TEST_F(ChainTest, DrawFrequenciesMatchTheProbabilities) {
  const std::vector<double> probabilities = {0.4, 0.25, 0.15, 0.1, 0.07, 0.03};
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  constexpr int kDraws = 200000;
  for (const bool by_position : {false, true}) {
    Request request;
    request.prompt = {0};
    std::vector<int> counts(probabilities.size());
    std::vector<TokenId> tokens = {0};
    for (int i = 0; i < kDraws; ++i) {
      if (by_position) {
        tokens.push_back(0);
      }
      const uint64_t seed = by_position ? 99 : static_cast<uint64_t>(i);
      Chain chain(request, {}, seed, 0);
      ++counts[static_cast<size_t>(choose(chain, logits, {tokens, 1})->id)];
    }
    double chi_square = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double expected = probabilities[i] * kDraws;
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(chi_square, 20.5) << (by_position ? "by position" : "by seed");
  }
}

}  // namespace
}  // namespace headrace
