#include "model/head_norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace headrace {
namespace {

TEST(BalanceHeadNorms, BringsWeightsTogetherByPowersOfTwo) {
  std::vector<float> q = {16.0F, 3.0F, 0.5F};
  std::vector<float> k = {1.0F, 3.0F, 9.0F};
  balance_head_norms(q, k, 0);
  EXPECT_EQ(q, (std::vector<float>{4.0F, 3.0F, 2.0F}));
  EXPECT_EQ(k, (std::vector<float>{4.0F, 3.0F, 2.25F}));
}

TEST(BalanceHeadNorms, FeaturesThatAreRotatedTogetherShareTheirFactor) {
  std::vector<float> q = {8.0F, 1.0F, 2.0F, 1.0F, 4.0F, 64.0F};
  std::vector<float> k = {0.5F, 1.0F, 0.5F, 1.0F, 1.0F, 1.0F};
  const std::vector<float> old_q = q;
  const std::vector<float> old_k = k;
  balance_head_norms(q, k, 4);
  for (size_t i = 0; i < q.size(); ++i) EXPECT_EQ(q[i] * k[i], old_q[i] * old_k[i]);
  EXPECT_EQ(q[0] / old_q[0], q[2] / old_q[2]);
  EXPECT_EQ(q[1], 1.0F);
  EXPECT_EQ(q[3], 1.0F);
  EXPECT_EQ(q[0], 2.0F);
  EXPECT_EQ(k[4], 2.0F);
  EXPECT_EQ(q[5], 8.0F);
}

TEST(BalanceHeadNorms, ZerosAndWhatIsNotFiniteAreLeftAlone) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> q = {0.0F, 5.0F, infinity, 5.0F, 1e30F, 0.0F};
  std::vector<float> k = {5.0F, 0.0F, 5.0F, std::nanf(""), 1e-30F, 0.0F};
  balance_head_norms(q, k, 0);
  EXPECT_EQ(q[0], 0.0F);
  EXPECT_EQ(k[0], 5.0F);
  EXPECT_EQ(q[1], 5.0F);
  EXPECT_EQ(k[1], 0.0F);
  EXPECT_EQ(q[2], infinity);
  EXPECT_EQ(k[2], 5.0F);
  EXPECT_EQ(q[3], 5.0F);
  EXPECT_EQ(k[4], 1e-30F * 65536.0F);
  EXPECT_EQ(q[5], 0.0F);
}

}  // namespace
}  // namespace headrace
