#include "app/load/slo.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(LoadSlo, Times) {
  EXPECT_DOUBLE_EQ(*parse_milliseconds("500ms"), 500);
  EXPECT_DOUBLE_EQ(*parse_milliseconds("1.5s"), 1500);
  EXPECT_DOUBLE_EQ(*parse_milliseconds("2m"), 120000);
  for (const char* text : {"", "5", "ms", "-5ms", "0ms", "5 ms", "5h", "1e3ms", "infs", "nans",
                           "99999999999s", "0.0001ms"}) {
    EXPECT_FALSE(parse_milliseconds(text).ok()) << text;
  }
}

TEST(LoadSlo, Bounds) {
  const auto slo = parse_slo("itl:50ms,ttft:0.5s,e2e:5s");
  ASSERT_TRUE(slo.ok());
  EXPECT_EQ(slo->ttft_ms, 500);
  EXPECT_EQ(slo->itl_ms, 50);
  EXPECT_EQ(slo->e2e_ms, 5000);
  EXPECT_FALSE(slo->tpot_ms.has_value());
  EXPECT_EQ(slo->text(), "ttft:500ms,itl:50ms,e2e:5000ms");
  EXPECT_EQ(parse_slo(slo->text())->text(), slo->text());
  EXPECT_EQ(parse_slo("e2e:5m")->text(), "e2e:300000ms");
  EXPECT_TRUE(LoadSlo().is_empty());
  EXPECT_FALSE(slo->is_empty());
}

TEST(LoadSlo, RefusesWithAnExample) {
  for (const char* text : {"", "ttft", "ttft:", "ttft:5", "x:5ms", "ttft:5ms,", ",ttft:5ms",
                           "ttft:5ms,,itl:5ms", "ttft:5ms,ttft:6ms", "ttft:5ms;itl:5ms"}) {
    const auto slo = parse_slo(text);
    ASSERT_FALSE(slo.ok()) << text;
    EXPECT_EQ(slo.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(slo.error().message.rfind("expected ", 0), 0U) << slo.error().message;
  }
}

}  // namespace
}  // namespace headrace
