#include "base/checked.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace headrace {
namespace {

TEST(Checked, AddAndMul) {
  EXPECT_EQ(checked_add<uint64_t>(1, 2), 3u);
  EXPECT_FALSE(checked_add<uint64_t>(UINT64_MAX, 1));
  EXPECT_FALSE(checked_add<int64_t>(INT64_MAX, 1));
  EXPECT_EQ(checked_mul<int64_t>(INT64_MAX, 1), INT64_MAX);
  EXPECT_FALSE(checked_mul<int64_t>(INT64_MAX, 2));
  EXPECT_FALSE(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32));
}

TEST(Checked, Cast) {
  EXPECT_EQ(checked_cast<int32_t>(int64_t{5}), 5);
  EXPECT_EQ(checked_cast<int32_t>(int64_t{INT32_MIN}), INT32_MIN);
  EXPECT_FALSE(checked_cast<int32_t>(int64_t{INT32_MIN} - 1));
  EXPECT_FALSE(checked_cast<int32_t>(uint64_t{1} << 31));
  EXPECT_FALSE(checked_cast<uint64_t>(int64_t{-1}));
  EXPECT_FALSE(checked_cast<int64_t>(UINT64_MAX));
}

TEST(Checked, AlignUp) {
  EXPECT_EQ(checked_align_up(0, 32), 0u);
  EXPECT_EQ(checked_align_up(33, 32), 64u);
  EXPECT_FALSE(checked_align_up(UINT64_MAX - 3, 32));
}

TEST(Check, FailureNamesBothValuesAndNoFolder) {
  try {
    HEADRACE_CHECK_EQ(1 + 1, 3);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_EQ(
        std::string(error.what()).rfind("check failed: 1 + 1 == 3 (2 vs 3) at checked_test.cc:", 0),
        0u)
        << error.what();
  }
}

}  // namespace
}  // namespace headrace
