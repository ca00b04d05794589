#include "sampling/logit_edits.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(LogitEdits, OneATokenAndRow) {
  LogitEdits edits(10);
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

TEST(LogitEdits, OrderOfTheParts) {
  EXPECT_EQ(edited_logit({.bias = 2, .repetition = 2, .penalty = 1}, 4), 2);
  EXPECT_EQ(edited_logit({.bias = -6, .repetition = 2, .penalty = 1}, 4), -5);
  EXPECT_EQ(edited_logit({}, 4), 4);
}

}  // namespace
}  // namespace headrace
