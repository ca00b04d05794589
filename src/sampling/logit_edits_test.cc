#include "sampling/logit_edits.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(LogitEdits, OneATokenAndRow) {
  LogitEdits edits;
  for (int step = 0; step < 2; ++step) {
    edits.clear();
    edits.begin_row();
    edits.of(7).bias = 1;
    edits.of(3).bias = 2;
    edits.of(7).penalty = 3;
    edits.begin_row();
    edits.begin_row();
    edits.of(7).bias = 4;
    ASSERT_EQ(edits.num_rows(), 3U);
    ASSERT_EQ(edits.row(0).size(), 2U);
    EXPECT_EQ(edits.row(0)[0].id, 7);
    EXPECT_EQ(edits.row(0)[0].bias, 1);
    EXPECT_EQ(edits.row(0)[0].penalty, 3);
    EXPECT_EQ(edits.row(0)[1].id, 3);
    EXPECT_TRUE(edits.row(1).empty());
    ASSERT_EQ(edits.row(2).size(), 1U);
    EXPECT_EQ(edits.row(2)[0].bias, 4);
    EXPECT_EQ(edits.row(2)[0].penalty, 0);
  }
}

TEST(LogitEdits, ManyTokens) {
  LogitEdits edits;
  for (const TokenId count : {5000, 3, 20000}) {
    edits.clear();
    edits.begin_row();
    for (int round = 0; round < 2; ++round) {
      for (TokenId id = 0; id < count; ++id) edits.of(id * 13).bias += 1;
    }
    ASSERT_EQ(std::ssize(edits.row(0)), count);
    for (TokenId id = 0; id < count; ++id) {
      ASSERT_EQ(edits.row(0)[static_cast<size_t>(id)].id, id * 13);
      ASSERT_EQ(edits.row(0)[static_cast<size_t>(id)].bias, 2);
    }
  }
}

TEST(LogitEdits, OrderOfTheParts) {
  EXPECT_EQ(edited_logit({.bias = 2, .repetition = 2, .penalty = 1}, 4), 2);
  EXPECT_EQ(edited_logit({.bias = -6, .repetition = 2, .penalty = 1}, 4), -5);
  EXPECT_EQ(edited_logit({}, 4), 4);
}

}  // namespace
}  // namespace headrace
