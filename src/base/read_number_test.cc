#include "base/read_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace headrace {
namespace {

TEST(ReadNumber, TakesWholeTexts) {
  int64_t whole = 5;
  EXPECT_EQ(read_number("-12", whole), std::errc());
  EXPECT_EQ(whole, -12);
  double real = 0;
  EXPECT_EQ(read_number("1e-1", real), std::errc());
  EXPECT_EQ(real, 0.1);
}

TEST(ReadNumber, LeavesTheValueWhereThereIsNone) {
  for (const char* text : {"", "-", "+1", " 1", "1 ", "1x", "0x10", "1.5", "x"}) {
    int64_t value = 5;
    EXPECT_EQ(read_number(text, value), std::errc::invalid_argument) << text;
    EXPECT_EQ(value, 5) << text;
  }
  uint64_t value = 5;
  EXPECT_EQ(read_number("-1", value), std::errc::invalid_argument);
  EXPECT_EQ(read_number("18446744073709551616", value), std::errc::result_out_of_range);
  EXPECT_EQ(read_number("99999999999999999999x", value), std::errc::invalid_argument);
  EXPECT_EQ(value, 5U);
}

TEST(ReadNumber, Within) {
  EXPECT_EQ(number_within("8", -8, 8), 8);
  EXPECT_EQ(number_within("-8", -8, 8), -8);
  EXPECT_FALSE(number_within("9", -8, 8));
  EXPECT_FALSE(number_within("-9", -8, 8));
  EXPECT_FALSE(number_within("eight", -8, 8));
}

}  // namespace
}  // namespace headrace
