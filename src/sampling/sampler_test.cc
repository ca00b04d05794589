// The way a step's tokens are chosen: whatever is asked of the backend first, the whole row says
// the same; rows do not depend on company or threads; and the tokens are those of the documented
// steps, done plainly in double precision.
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "tests/infinity.h"

namespace headrace {
namespace {

using test::kInf;

struct Case {
  Request request;
  std::vector<TokenId> tokens;  ///< prompt and completion
  std::vector<TokenId> end_tokens;
  std::vector<float> logits;
  uint64_t seed = 0;

  TokenHistory history() const { return {tokens, std::ssize(request.prompt)}; }
  Chain chain(int32_t max_top) const { return {request, end_tokens, seed, 0, max_top}; }
};

class Cases {
 public:
  explicit Cases(uint32_t seed) : random_(seed) {}

  Case next(int64_t vocab) {
    Case out;
    SamplingParams& sampling = out.request.sampling;
    sampling.temperature = pick<float>({0.0F, 1e-4F, 0.7F, 0.8F, 1.0F, 1.0F, 1.7F, 1e6F});
    sampling.top_k = pick<int32_t>({0, 0, 0, 1, 5, 40, 256, 300, 1000000});
    sampling.typical_p = pick<float>({1, 1, 1, 1, 0.9F, 0.2F});
    sampling.top_p = pick<float>({1, 1, 0.99999994F, 0.95F, 0.5F, 1e-6F});
    sampling.min_p = pick<float>({0, 0, 0.05F, 1e-4F, 1});
    if (below(3) == 0) {
      sampling.repetition_penalty = pick<float>({1, 1.1F, 0.8F});
      sampling.presence_penalty = pick<float>({0, 0.5F});
      sampling.frequency_penalty = pick<float>({0, 0.3F});
      sampling.penalty_last_n = pick<int32_t>({-1, 0, 7});
    }
    if (below(4) == 0) {
      sampling.dry_multiplier = pick<float>({0.5F, 1e9F});
      sampling.dry_allowed_length = pick<int32_t>({0, 1});
    }
    if (below(3) == 0) {
      sampling.xtc_probability = pick<float>({0.5F, 1});
      sampling.xtc_threshold = pick<float>({0, 0.01F, 0.2F, 0.6F});
    }
    if (below(3) == 0) {
      sampling.mirostat = pick<int32_t>({1, 2});
      sampling.mirostat_tau = pick<float>({0, 1, 3, 5, 1000});
    }
    if (below(4) == 0) {
      for (int i = 0; i < 5; ++i) sampling.logit_bias.emplace_back(token(vocab), 3.0F * unit());
    }
    out.request.num_logprobs = pick<int32_t>({-1, -1, 0, 3, 20, 300});
    out.request.num_logprobs = std::min(out.request.num_logprobs, static_cast<int32_t>(vocab));
    out.request.stop.min_tokens = below(4) == 0 ? 100 : 0;
    out.end_tokens = {token(vocab)};
    out.request.prompt.assign(static_cast<size_t>(1 + below(6)), 0);
    for (TokenId& one : out.request.prompt) one = token(vocab);
    out.tokens = out.request.prompt;
    for (int64_t i = below(9); i > 0; --i) out.tokens.push_back(token(vocab));
    out.seed = random_();
    const float spread = pick<float>({0.0F, 0.5F, 3.0F, 9.0F});
    out.logits.resize(static_cast<size_t>(vocab));
    for (float& one : out.logits) {
      one = spread * unit();
      if (below(9) == 0) one = std::round(one);
      if (below(30) == 0) one = -kInf;
    }
    out.logits[static_cast<size_t>(token(vocab))] = spread;
    return out;
  }

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

 private:
  template <class T>
  T pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(std::ssize(values)))];
  }
  float unit() { return static_cast<float>(below(2000001)) * 1e-6F - 1.0F; }
  TokenId token(int64_t vocab) { return static_cast<TokenId>(below(vocab)); }

  std::mt19937_64 random_;
};

std::unique_ptr<Backend> best_backend(int threads) {
  return make_cpu_backend({available_isas().back(), threads});
}

Result<SampledToken> choose(Backend& backend, Sampler& sampler, const Case& one, int32_t max_top) {
  Chain chain = one.chain(max_top);
  const Buffer row = backend.upload(one.logits);
  sampler.clear();
  sampler.add(chain, one.history());
  sampler.run(row.view());
  return sampler.choose(0);
}

void expect_same(const Result<SampledToken>& a, const Result<SampledToken>& b) {
  ASSERT_EQ(a.ok(), b.ok());
  if (!a.ok()) {
    EXPECT_EQ(a.error().to_string(), b.error().to_string());
    return;
  }
  EXPECT_EQ(a->id, b->id);
  EXPECT_EQ(a->logprob, b->logprob);
  ASSERT_EQ(a->top.size(), b->top.size());
  for (size_t i = 0; i < a->top.size(); ++i) {
    EXPECT_EQ(a->top[i].id, b->top[i].id);
    EXPECT_EQ(a->top[i].logprob, b->top[i].logprob);
  }
}

TEST(Sampler, TheWholeRowSaysTheSame) {
  const auto backend = best_backend(2);
  for (const int64_t vocab : {3, 60, 700, 9000}) {
    Sampler sampler(*backend, 1, vocab);
    Cases cases(static_cast<uint32_t>(vocab));
    for (int round = 0; round < (vocab > 1000 ? 1500 : 5000); ++round) {
      const Case one = cases.next(vocab);
      const auto usual = choose(*backend, sampler, one, kMaxTopLogits);
      // Never asked of the backend (0), almost never (1), now and then.
      for (const int32_t max_top : {0, 1, 12}) {
        expect_same(choose(*backend, sampler, one, max_top), usual);
        ASSERT_FALSE(testing::Test::HasFailure()) << "vocab " << vocab << " round " << round;
      }
    }
  }
}

TEST(Sampler, RowsDoNotDependOnCompanyOrThreads) {
  constexpr int64_t kVocab = 20000;
  constexpr size_t kRows = 40;
  Cases cases(1);
  std::vector<Case> all;
  std::vector<Chain> chains;
  all.reserve(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    all.push_back(cases.next(kVocab));
    chains.push_back(all.back().chain(kMaxTopLogits));
  }
  all[7].logits[15000] = std::numeric_limits<float>::quiet_NaN();
  std::vector<Result<SampledToken>> alone;
  {
    const auto backend = best_backend(1);
    Sampler sampler(*backend, 1, kVocab);
    for (const Case& one : all) {
      alone.push_back(choose(*backend, sampler, one, kMaxTopLogits));
    }
  }
  EXPECT_FALSE(alone[7].ok());
  for (const int threads : {1, 2, 4}) {
    const auto backend = best_backend(threads);
    Sampler sampler(*backend, kRows, kVocab);
    const Buffer rows(DType::f32, kRows, kVocab);
    for (size_t i = 0; i < kRows; ++i) {
      std::copy(all[i].logits.begin(), all[i].logits.end(),
                rows.view().f32(static_cast<int64_t>(i)));
      sampler.add(chains[i], all[i].history());
    }
    sampler.run(rows.view());
    for (size_t i = 0; i < kRows; ++i) expect_same(sampler.choose(i), alone[i]);
  }
}

/// The documented steps, plainly: which tokens are left, in the order of the draw, and what of the
/// total lies before each.
struct Plain {
  std::vector<std::pair<double, TokenId>> left;  ///< weight, token
};

Plain plain_steps(const Case& one, const std::vector<float>& logits) {
  const SamplingParams& params = one.request.sampling;
  std::vector<TokenId> ids;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInf) ids.push_back(static_cast<TokenId>(i));
  }
  const auto logit = [&](TokenId id) { return double{logits[static_cast<size_t>(id)]}; };
  const double largest = double{*std::max_element(logits.begin(), logits.end())};
  const auto weight = [&](TokenId id) {
    return std::exp((logit(id) - largest) / double{params.temperature});
  };
  const auto sum = [&](const std::vector<TokenId>& of) {
    double total = 0;
    for (const TokenId id : of) total += weight(id);
    return total;
  };
  const bool cuts = params.top_k > 0 || params.top_p < 1 || params.min_p > 0;
  if (cuts) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  }
  if (params.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(params.top_k)));
  if (params.top_p < 1) {
    const double total = sum(ids);
    double reached = 0;
    size_t count = 0;
    while (count < ids.size() && reached < double{params.top_p} * total) {
      reached += weight(ids[count++]);
    }
    ids.resize(std::max<size_t>(count, 1));
  }
  std::erase_if(ids, [&](TokenId id) { return weight(id) < double{params.min_p}; });
  Plain out;
  for (const TokenId id : ids) out.left.emplace_back(weight(id), id);
  return out;
}

// But for roundings of float32 sums: a draw that falls within 1e-5 of a token's interval is its.
TEST(Sampler, TokensAreThoseOfThePlainSteps) {
  const auto backend = best_backend(2);
  Cases cases(3);
  for (const int64_t vocab : {50, 3000, 20000}) {
    Sampler sampler(*backend, 1, vocab);
    for (int round = 0; round < 400; ++round) {
      Case one = cases.next(vocab);
      one.request.sampling.typical_p = 1;
      one.request.sampling.dry_multiplier = 0;
      one.request.sampling.xtc_probability = 0;
      one.request.sampling.mirostat = 0;
      if (one.request.sampling.top_p > 0.999F) one.request.sampling.top_p = 1;
      one.request.stop.min_tokens = 0;
      const SamplingParams& params = one.request.sampling;
      std::vector<float> logits = one.logits;
      for (const auto& [id, bias] : params.logit_bias) logits[static_cast<size_t>(id)] += bias;
      if (params.repetition_penalty != 1 || params.presence_penalty != 0 ||
          params.frequency_penalty != 0 || !params.logit_bias.empty()) {
        one.request.sampling.penalty_last_n = 0;
      }
      const auto token = choose(*backend, sampler, one, kMaxTopLogits);
      ASSERT_TRUE(token.ok());
      if (params.temperature == 0) {
        EXPECT_EQ(token->id, std::max_element(logits.begin(), logits.end()) - logits.begin());
        continue;
      }
      const double draw = to_unit_interval(counter_random(one.seed, 0, one.tokens.size(), 0));
      const Plain plain = plain_steps(one, logits);
      double total = 0;
      for (const auto& [weight, id] : plain.left) total += weight;
      double before = 0;
      bool found = false;
      for (const auto& [weight, id] : plain.left) {
        if (id == token->id) {
          found = true;
          ASSERT_LE(before, (draw + 1e-5) * total) << "round " << round;
          ASSERT_GE(before + weight, (draw - 1e-5) * total) << "round " << round;
        }
        before += weight;
      }
      ASSERT_TRUE(found) << "round " << round;
    }
  }
}

TEST(Sampler, LogprobsAreOfTheModelWhateverTheEdits) {
  const auto backend = best_backend(2);
  Cases cases(5);
  for (const int64_t vocab : {400, 9000}) {
    Sampler sampler(*backend, 1, vocab);
    for (int round = 0; round < 200; ++round) {
      Case one = cases.next(vocab);
      for (const int32_t count : {0, 20, 300}) {
        one.request.num_logprobs = count;
        const auto token = choose(*backend, sampler, one, kMaxTopLogits);
        ASSERT_TRUE(token.ok());
        double sum = 0;
        for (const float logit : one.logits) sum += std::exp(double{logit});
        const auto logprob = [&](TokenId id) {
          return double{one.logits[static_cast<size_t>(id)]} - std::log(sum);
        };
        EXPECT_NEAR(token->logprob, logprob(token->id), 2e-6);
        ASSERT_EQ(token->top.size(), static_cast<size_t>(count));
        for (size_t i = 0; i < token->top.size(); ++i) {
          ASSERT_NEAR(token->top[i].logprob, logprob(token->top[i].id), 2e-6);
          if (i > 0) {
            ASSERT_GE(token->top[i - 1].logprob, token->top[i].logprob);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
