#include "text/chat_template/strftime.h"

#include <gtest/gtest.h>

namespace headrace::jinja {
namespace {

constexpr int64_t kThursday = 1768469400;  // 2026-01-15 09:30:00

TEST(Strftime, Codes) {
  EXPECT_EQ(format_time(kThursday, "%Y-%m-%d %H:%M:%S"), "2026-01-15 09:30:00");
  EXPECT_EQ(format_time(kThursday, "%d %b %Y"), "15 Jan 2026");
  EXPECT_EQ(format_time(kThursday, "%A, %B %-d, %y %a %h"), "Thursday, January 15, 26 Thu Jan");
  EXPECT_EQ(format_time(kThursday, "%j %U %W %w %u %V %G %g"), "015 02 02 4 4 03 2026 26");
  EXPECT_EQ(format_time(kThursday, "%I %p %-I %l %k %e %C"), "09 AM 9  9  9 15 20");
  EXPECT_EQ(format_time(kThursday, "%c|%x|%X|%D|%F|%T|%R|%r"),
            "Thu Jan 15 09:30:00 2026|01/15/26|09:30:00|01/15/26|2026-01-15|09:30:00|09:30|"
            "09:30:00 AM");
  EXPECT_EQ(format_time(kThursday, "%s %f %% [%Z%z]"), "1768469400 000000 % []");
}

TEST(Strftime, UnknownCodesAndLonePercentStay) {
  EXPECT_EQ(format_time(kThursday, "%Q %"), "%Q %");
  EXPECT_EQ(format_time(kThursday, "100%"), "100%");
  EXPECT_EQ(format_time(kThursday, ""), "");
}

TEST(Strftime, EdgesOfTheCalendar) {
  EXPECT_EQ(format_time(0, "%F %T %a %j"), "1970-01-01 00:00:00 Thu 001");
  EXPECT_EQ(format_time(-1, "%F %T"), "1969-12-31 23:59:59");
  EXPECT_EQ(format_time(951782400, "%F %j"), "2000-02-29 060");
  EXPECT_EQ(format_time(1735603200, "%F %G-W%V"), "2024-12-31 2025-W01");
  EXPECT_EQ(format_time(1609459200, "%F %G-W%V %U %W"), "2021-01-01 2020-W53 00 00");
  EXPECT_EQ(format_time(INT64_MAX, "%Y"), "9999");
  EXPECT_EQ(format_time(INT64_MIN, "%Y"), "1");
}

TEST(Strftime, TwelveHourClock) {
  EXPECT_EQ(format_time(0, "%I%p"), "12AM");
  EXPECT_EQ(format_time(43200, "%I%p"), "12PM");
  EXPECT_EQ(format_time(46800, "%I%P"), "01pm");
}

}  // namespace
}  // namespace headrace::jinja
