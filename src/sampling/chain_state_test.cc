// DRY, XTC and mirostat as part of the chain: how often and how strongly they act, and what the
// chain remembers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sampling/test_chain.h"

namespace headrace {
namespace {

TEST(Chain, NeedsAllLogitsForDryXtcAndMirostat) {
  const auto num_decisive = [](const SamplingParams& sampling) {
    Request request;
    request.prompt = {0};
    request.sampling = sampling;
    const std::vector<TokenId> tokens = {0, 1};
    return Chain(request, {7}, 1, 0).num_decisive({tokens, 1});
  };
  EXPECT_EQ(num_decisive({.top_k = 40}), 40);
  EXPECT_EQ(num_decisive({.dry_multiplier = 0.8F, .top_k = 40}), 0);
  EXPECT_EQ(num_decisive({.dry_multiplier = 0.8F, .temperature = 0}), 0);
  EXPECT_EQ(num_decisive({.dry_multiplier = 0.8F, .dry_penalty_last_n = 0, .top_k = 40}), 40);
  EXPECT_EQ(num_decisive({.top_k = 40, .xtc_probability = 0.1F}), 0);
  EXPECT_EQ(num_decisive({.top_k = 40, .mirostat = 1}), 0);
  EXPECT_EQ(num_decisive({.top_k = 40, .mirostat = 2}), 0);
  EXPECT_EQ(num_decisive({.temperature = 0, .xtc_probability = 0.1F, .mirostat = 2}), 1);
}

TEST_F(ChainTest, DryTakesARepeatsNextToken) {
  Request request = greedy();
  request.sampling.dry_multiplier = 1;
  const std::vector<float> logits = {0, 3, 2.5F, 1};
  EXPECT_EQ(choose(request, logits, {2, 3, 1, 0, 2, 3})->id, 2);
  EXPECT_EQ(choose(request, logits, {2, 3, 1, 0, 0, 3})->id, 1) << "one token is no repeat";
}

TEST_F(ChainTest, GreedyIgnoresXtcAndMirostat) {
  Request request = greedy();
  request.sampling.xtc_probability = 1;
  request.sampling.mirostat = 2;
  request.sampling.mirostat_tau = 0;
  EXPECT_EQ(choose(request, {1, 7, 6.9F, 2})->id, 1);
}

TEST_F(ChainTest, XtcActsAsOftenAsItShould) {
  // Where it acts, only the second token and the last are left.
  const std::vector<double> probabilities = {0.5, 0.3, 0.2};
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  constexpr int kDraws = 40000;
  constexpr double kActs = 0.4;
  Request request;
  request.prompt = {0};
  request.sampling.xtc_probability = static_cast<float>(kActs);
  request.sampling.xtc_threshold = 0.25F;
  for (const int32_t top_k : {0, 3}) {
    request.sampling.top_k = top_k;
    std::vector<int> counts(3);
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      ++counts[static_cast<size_t>(choose(request, logits, {0}, seed)->id)];
    }
    const std::vector<double> expected = {(1 - kActs) * 0.5, (1 - kActs) * 0.3 + kActs * 0.6,
                                          (1 - kActs) * 0.2 + kActs * 0.4};
    double chi_square = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double mean = expected[i] * kDraws;
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    EXPECT_LT(chi_square, 13.8) << "once in a thousand tries; the seeds are fixed";
  }
}

TEST_F(ChainTest, XtcThatCannotActChangesNoDraw) {
  std::vector<float> logits(500);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 0.01F * static_cast<float>(i % 37);
  Request without;
  without.prompt = {0};
  without.sampling.top_k = 40;
  Request with = without;
  with.sampling.xtc_probability = 1;
  for (const float threshold : {0.3F, 0.6F}) {  // no token is as likely
    with.sampling.xtc_threshold = threshold;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      EXPECT_EQ(choose(with, logits, {0}, seed)->id, choose(without, logits, {0}, seed)->id);
    }
  }
}

class MirostatChain : public ChainTest, public testing::WithParamInterface<int32_t> {
 protected:
  MirostatChain() {
    request_.prompt = {0};
    request_.sampling.mirostat = GetParam();
    request_.sampling.mirostat_tau = 3;
    for (int rank = 1; rank <= 2000; ++rank) {
      logits_.push_back(-1.1F * std::log(static_cast<float>(rank)));
    }
  }
  Request request_;
  std::vector<float> logits_;
};

TEST_P(MirostatChain, SurpriseTendsToWhatIsAimedAt) {
  for (const float tau : {2.0F, 3.0F, 4.5F}) {
    request_.sampling.mirostat_tau = tau;
    Chain chain(request_, {}, 7, 0);
    std::vector<TokenId> tokens = {0};
    double total = 0;
    for (const float logit : logits_) total += std::exp(double{logit});
    double sum = 0;
    constexpr int kSkipped = 500;
    constexpr int kTokens = 4000;
    for (int i = 0; i < kSkipped + kTokens; ++i) {
      tokens.push_back(choose(chain, logits_, {tokens, 1})->id);
      if (i < kSkipped) continue;
      // Of the model's probability; that among the tokens left, which it steers, is a little less.
      sum += std::log2(total) - double{logits_[static_cast<size_t>(tokens.back())]} / std::log(2.0);
    }
    const double surprise = sum / kTokens;
    EXPECT_GT(surprise, double{tau} - 0.1);
    EXPECT_LT(surprise, double{tau} + 1.5);
  }
}

TEST_P(MirostatChain, LessIsLeftOnceItHasLearnt) {
  request_.sampling.mirostat_tau = 1;
  request_.sampling.mirostat_eta = 1;
  Chain chain(request_, {}, 3, 0);
  std::vector<TokenId> tokens = {0};
  std::vector<TokenId> later;
  for (int i = 0; i < 60; ++i) {
    tokens.push_back(choose(chain, logits_, {tokens, 1})->id);
    if (i >= 20) later.push_back(tokens.back());
  }
  EXPECT_LT(*std::max_element(later.begin(), later.end()), 40);
  EXPECT_GT(*std::max_element(later.begin(), later.end()), 0);
}

TEST_P(MirostatChain, ChoosingAgainIsNoFurtherStep) {
  request_.sampling.mirostat_eta = 1;
  const auto run = [&](int times) {
    Chain chain(request_, {}, 3, 0);
    std::vector<TokenId> tokens = {0};
    for (int i = 0; i < 100; ++i) {
      TokenId id = -1;
      for (int again = 0; again < times; ++again) id = choose(chain, logits_, {tokens, 1})->id;
      tokens.push_back(id);
    }
    return tokens;
  };
  EXPECT_EQ(run(1), run(3)) << "as after a step that failed";
}

TEST_P(MirostatChain, TheStepsItReplacesDoNotAct) {
  Request other = request_;
  other.sampling.top_k = 1;
  other.sampling.top_p = 0.1F;
  other.sampling.min_p = 0.9F;
  other.sampling.typical_p = 0.2F;
  other.sampling.xtc_probability = 1;
  other.sampling.xtc_threshold = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(choose(other, logits_, {0}, seed)->id, choose(request_, logits_, {0}, seed)->id);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, MirostatChain, testing::Values(1, 2));

}  // namespace
}  // namespace headrace
