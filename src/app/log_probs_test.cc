#include "app/log_probs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headrace {
namespace {

TEST(LogProbs, NormalizerOfKnownRows) {
  const std::vector<float> equal(8, 3.0F);
  EXPECT_NEAR(log_sum_exp(equal), 3.0 + std::log(8.0), 1e-12);
  const std::vector<float> far{1000.0F, 0.0F, -1000.0F};
  EXPECT_NEAR(log_sum_exp(far), 1000.0, 1e-9);
}

TEST(LogProbs, RowsWithoutMeaningAreNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{0.0F, std::nanf("")})));
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{0.0F, infinity})));
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{-infinity, -infinity})));
  EXPECT_NEAR(log_sum_exp(std::vector<float>{2.0F, -infinity}), 2.0, 1e-12);
}

TEST(LogProbs, TopIsSortedAndTiesGoToTheSmallerId) {
  const std::vector<float> logits{1.0F, 5.0F, 2.0F, 5.0F, -1.0F};
  EXPECT_EQ(largest(logits), 1);
  const double normalizer = log_sum_exp(logits);
  const auto top = top_logprobs(logits, normalizer, 3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 3);
  EXPECT_EQ(top[2].id, 2);
  EXPECT_NEAR(top[0].logprob, 5.0 - normalizer, 1e-6);
  EXPECT_EQ(top_logprobs(logits, normalizer, 99).size(), 5U);
  EXPECT_TRUE(top_logprobs(logits, normalizer, 0).empty());
}

}  // namespace
}  // namespace headrace
