#include "cli/parse_time.h"

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

TEST(ParseTime, SecondsDatesAndTimes) {
  EXPECT_EQ(*parse_time("0"), 0);
  EXPECT_EQ(*parse_time("1767225600"), 1767225600);
  EXPECT_EQ(*parse_time("1970-01-01"), 0);
  EXPECT_EQ(*parse_time("2026-01-01"), 1767225600);
  EXPECT_EQ(*parse_time("2026-01-01T00:00:01"), 1767225601);
  EXPECT_EQ(*parse_time("2026-01-01 12:30"), 1767225600 + 12 * 3600 + 30 * 60);
  EXPECT_EQ(*parse_time("2024-02-29"), 1709164800);
}

TEST(ParseTime, RefusesWhatIsNone) {
  for (const char* text :
       {"", "now", "2026-13-01", "2025-02-29", "2026-01-01T25:00", "2026-01-01T12",
        "2026-01-01x12:30", "2026-01-01T12:60", "2026-01-01T12:30:15Z", "12s"}) {
    EXPECT_FALSE(parse_time(text).ok()) << text;
  }
}

}  // namespace
}  // namespace headrace::cli
