#include "app/load/length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace headrace {
namespace {

LoadLength parsed(std::string_view text) {
  auto length = LoadLength::parse(text);
  EXPECT_TRUE(length.ok()) << text;
  return length.ok() ? *length : LoadLength();
}

std::vector<int64_t> draws(const LoadLength& length, uint64_t count) {
  std::vector<int64_t> out;
  for (uint64_t i = 0; i < count; ++i) {
    LoadRandom random(7, LoadPurpose::input_length, i);
    out.push_back(length.draw(random));
  }
  return out;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  int64_t least = kMaxLoadLength;
  int64_t most = 0;
};

Moments moments(std::string_view text) {
  Moments out;
  const auto values = draws(parsed(text), 40000);
  for (const int64_t value : values) {
    out.mean += static_cast<double>(value) / static_cast<double>(values.size());
    out.least = std::min(out.least, value);
    out.most = std::max(out.most, value);
  }
  for (const int64_t value : values) {
    const double off = static_cast<double>(value) - out.mean;
    out.deviation += off * off / static_cast<double>(values.size());
  }
  out.deviation = std::sqrt(out.deviation);
  return out;
}

TEST(LoadLength, Fixed) {
  const LoadLength length = parsed("250");
  EXPECT_EQ(length.longest(), 250);
  EXPECT_EQ(length.mean(), 250);
  EXPECT_EQ(draws(length, 3), (std::vector<int64_t>{250, 250, 250}));
}

TEST(LoadLength, LogUniformHasAsManyInEachOctave) {
  const LoadLength length = parsed("log:16..512");
  EXPECT_EQ(length.longest(), 512);
  EXPECT_NEAR(length.mean(), 496 / std::log(32.0), 1e-9);
  EXPECT_EQ(length.text(), "log:16..512");
  const auto values = draws(length, 40000);
  std::vector<int> octaves(5);
  for (const int64_t value : values) {
    ASSERT_GE(value, 16);
    ASSERT_LE(value, 512);
    ++octaves[std::min<size_t>(4, static_cast<size_t>(std::log2(static_cast<double>(value) / 16)))];
  }
  for (const int count : octaves) EXPECT_NEAR(count, 8000, 400);
  EXPECT_EQ(parsed("log:7..7").mean(), 7);
  for (const char* wrong : {"log:", "log:16", "log:0..5", "log:5..4", "log:..5", "lo:1..2"}) {
    EXPECT_FALSE(LoadLength::parse(wrong).ok()) << wrong;
  }
}

TEST(LoadLength, UniformReachesBothEnds) {
  EXPECT_EQ(parsed("16..512").longest(), 512);
  EXPECT_EQ(parsed("16..512").mean(), 264);
  const Moments seen = moments("16..512");
  EXPECT_EQ(seen.least, 16);
  EXPECT_EQ(seen.most, 512);
  EXPECT_NEAR(seen.mean, 264, 3);
  EXPECT_NEAR(seen.deviation, 496 / std::sqrt(12.0), 2);
}

TEST(LoadLength, NormalIsCutAtThreeDeviations) {
  const Moments seen = moments("normal:256:64");
  EXPECT_NEAR(seen.mean, 256, 2);
  EXPECT_NEAR(seen.deviation, 63, 2);  // a little less than 64: what lies outside is drawn again
  EXPECT_GE(seen.least, 256 - 3 * 64);
  EXPECT_LE(seen.most, parsed("normal:256:64").longest());
  EXPECT_EQ(parsed("normal:256:64").longest(), 256 + 3 * 64);
  EXPECT_EQ(moments("normal:4:40").least, 1) << "never no token at all";
}

TEST(LoadLength, LognormalHasTheMeanAsked) {
  const Moments seen = moments("lognormal:200:100");
  EXPECT_NEAR(seen.mean, 199, 3);
  EXPECT_NEAR(seen.deviation, 96, 4);
  EXPECT_LE(seen.most, parsed("lognormal:200:100").longest());
  EXPECT_GT(parsed("lognormal:200:100").longest(), 500);
  EXPECT_EQ(moments("lognormal:200:0").least, 200);
  EXPECT_EQ(moments("lognormal:200:0").most, 200);
}

TEST(LoadLength, TextIsReadBack) {
  for (const char* text : {"1", "250", "16..512", "normal:256.5:64", "lognormal:256:0.5"}) {
    EXPECT_EQ(parsed(text).text(), text);
  }
}

TEST(LoadLength, RefusesWithTheForms) {
  for (const char* text : {"",
                           "x",
                           "0",
                           "-1",
                           "1.5",
                           "16777217",
                           "16..",
                           "..16",
                           "0..4",
                           "1..16777217",
                           "1...2",
                           "normal",
                           "normal:",
                           "normal:5",
                           "normal:5:",
                           "normal:5:x",
                           "normal:0:1",
                           "normal:5:-1",
                           "normal:5:0.0001",
                           "normal:5:6:7",
                           "normal:inf:1",
                           "normal:nan:1",
                           "normal:1e3:1",
                           "even:5:6",
                           "5:6",
                           " 5",
                           "99999999999999999999"}) {
    const auto length = LoadLength::parse(text);
    ASSERT_FALSE(length.ok()) << text;
    EXPECT_EQ(length.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(length.error().message.find("16..512"), std::string::npos) << text;
  }
  EXPECT_NE(LoadLength::parse("9..3").error().message.find("smaller length first"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace
