#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/infinity.h"

namespace headrace {
namespace {

using test::kInf;

TEST(Logprobs, LogSumExpOfLargeLogits) {
  const std::vector<float> logits = {1000, 1000, -kInf};
  EXPECT_DOUBLE_EQ(log_sum_exp(logits), 1000 + std::log(2.0));
}

TEST(Logprobs, TopIsSortedTiesToTheSmallerId) {
  const std::vector<float> logits = {0, 2, 1, 2, -1};
  const auto top = top_logprobs(logits, 3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 3);
  EXPECT_EQ(top[2].id, 2);
  const double sum = std::exp(0.0) + 2 * std::exp(2.0) + std::exp(1.0) + std::exp(-1.0);
  EXPECT_NEAR(top[2].logprob, 1 - std::log(sum), 1e-6);
  EXPECT_EQ(top_logprobs(logits, 99).size(), 5U);
  EXPECT_TRUE(top_logprobs(logits, 0).empty());
}

TEST(Logprobs, ArgmaxTiesToTheSmallerId) {
  EXPECT_EQ(argmax(std::vector<float>{-1, 3, 3}), 1);
}

// Made-up logits with NaN, +Inf, all -Inf.
TEST(Logprobs, NaNAndInfAreErrors) {
  EXPECT_TRUE(check_logits(std::vector<float>{0, -kInf, 1}).ok());
  EXPECT_FALSE(check_logits(std::vector<float>{0, NAN, 1}).ok());
  EXPECT_FALSE(check_logits(std::vector<float>{0, kInf, 1}).ok());
  EXPECT_FALSE(check_logits(std::vector<float>{-kInf, -kInf}).ok());
}

}  // namespace
}  // namespace headrace
