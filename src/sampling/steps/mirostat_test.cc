#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "sampling/steps/steps.h"
#include "sampling/steps/test_candidates.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;

Ids left_by_surprise(const std::vector<double>& probabilities, double mu) {
  Candidates candidates = candidates_with(probabilities);
  apply_mirostat_2(mu, candidates);
  return ids_left(candidates);
}

TEST(Mirostat2, DropsWhatIsTooSurprising) {
  const std::vector<double> probabilities = {0.1, 0.5, 0.25, 0.15};  // 3.3, 1, 2, 2.7 bits
  EXPECT_EQ(left_by_surprise(probabilities, 10), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(left_by_surprise(probabilities, 3), (Ids{1, 2, 3}));
  EXPECT_EQ(left_by_surprise(probabilities, 2.5), (Ids{1, 2}));
  EXPECT_EQ(left_by_surprise(probabilities, 1.5), (Ids{1}));
}

TEST(Mirostat2, OneTokenAlwaysStays) {
  for (const double mu : {0.5, 0.0, -1.0, -1e300}) {
    EXPECT_EQ(left_by_surprise({0.1, 0.5, 0.25, 0.15}, mu), (Ids{1})) << mu;
  }
  EXPECT_EQ(left_by_surprise({1.0}, 0), (Ids{0}));
  EXPECT_EQ(left_by_surprise({}, 5), (Ids{}));
  EXPECT_EQ(left_by_surprise({0.6, 0.4}, 1e300), (Ids{0, 1}));
}

TEST(Mirostat2, APartThatCannotTellStaysOne) {
  const std::vector<TokenLogit> top = {{.id = 4, .logit = 0.0F}, {.id = 2, .logit = -1.0F}};
  for (const double mu : {1.0, 9.0}) {
    Candidates candidates;
    candidates.assign_most_likely(top, false);
    candidates.set_total_weight(1.6);  // surprises of 0.68 and 2.1 bits
    apply_mirostat_2(mu, candidates);
    EXPECT_EQ(candidates.is_part(), mu > 2);
    EXPECT_EQ(candidates.size(), mu > 2 ? 2U : 1U);
  }
}

/// The paper's formula as it stands there.
double plain_tokens(std::vector<double> probabilities, double mu) {
  std::sort(probabilities.begin(), probabilities.end(), std::greater<>());
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i + 1 < std::min<size_t>(100, probabilities.size()); ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += t * std::log(probabilities[i] / probabilities[i + 1]);
    squares += t * t;
  }
  const double s = products / squares;
  const double e = s - 1;
  const auto n = static_cast<double>(probabilities.size());
  return std::pow(e * std::pow(2.0, mu) / (1 - std::pow(n, -e)), 1 / s);
}

TEST(Mirostat1, IsThePapersFormula) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const double exponent = 0.3 + 0.01 * static_cast<double>(random() % 200);
    std::vector<double> probabilities(150 + random() % 1000);
    double rank = 0;
    for (double& p : probabilities) {
      p = std::pow(++rank, -exponent) * (1 + 0.001 * static_cast<double>(random() % 100));
    }
    const double mu = 0.1 * static_cast<double>(random() % 100);
    Candidates candidates = candidates_with(probabilities);
    apply_mirostat_1(mu, std::ssize(probabilities), candidates);
    const double expected = std::max(
        1.0, std::min(plain_tokens(probabilities, mu), static_cast<double>(probabilities.size())));
    ASSERT_NEAR(static_cast<double>(candidates.size()), expected, 1 + 1e-3 * expected);
  }
}

TEST(Mirostat1, OddRowsLeaveAtLeastOneToken) {
  for (const std::vector<float>& logits :
       {std::vector<float>{1}, {0, 0}, {0, 0, 0, 0, 0}, {0, -1e30F}, {1e30F, -1e30F, 3, 3}}) {
    for (const double mu : {-1e300, -3.0, 0.0, 2.0, 10.0, 1e300}) {
      Candidates candidates = candidates_of(logits);
      apply_mirostat_1(mu, std::ssize(logits), candidates);
      EXPECT_GE(candidates.size(), 1U);
      EXPECT_LE(candidates.size(), logits.size());
      EXPECT_FALSE(std::isnan(candidates.total_weight()));
    }
  }
  Candidates none;
  apply_mirostat_1(5, 10, none);
  EXPECT_EQ(none.size(), 0U);
}

TEST(Mirostat1, APartThatCannotTellStaysOne) {
  std::vector<TokenLogit> top;
  for (TokenId id = 0; id < 120; ++id) {
    top.push_back({.id = id, .logit = -std::log(static_cast<float>(id + 1))});
  }
  Candidates candidates;
  candidates.assign_most_likely(top, false);
  apply_mirostat_1(12, 50000, candidates);
  EXPECT_TRUE(candidates.is_part()) << "hundreds of tokens";
  apply_mirostat_1(5, 50000, candidates);
  EXPECT_FALSE(candidates.is_part());
  candidates.assign_most_likely(std::span(top).first(50), false);
  apply_mirostat_1(5, 50000, candidates);
  EXPECT_TRUE(candidates.is_part()) << "too few for the fit";
}

}  // namespace
}  // namespace headrace
