#include "cli/parse_bytes.h"

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

TEST(ParseBytes, Units) {
  EXPECT_EQ(*parse_bytes("1"), 1u);
  EXPECT_EQ(*parse_bytes("1500000"), 1500000u);
  EXPECT_EQ(*parse_bytes("512M"), 512u << 20);
  EXPECT_EQ(*parse_bytes("2GiB"), uint64_t{2} << 30);
  EXPECT_EQ(*parse_bytes("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(*parse_bytes("64k"), 65536u);
  EXPECT_EQ(*parse_bytes("10B"), 10u);
}

TEST(ParseBytes, RefusesWhatIsNone) {
  for (const char* text :
       {"", "G", "-1", "0", "1X", "1Gb", "1 G", "1e9", "nan", "inf", "0.1", "99999999T", "1GiBs"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

}  // namespace
}  // namespace headrace::cli
