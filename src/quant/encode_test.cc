#include "quant/encode.h"

#include <gtest/gtest.h>

#include <array>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace headrace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> encode_all(Format format, const std::vector<float>& values,
                                  const float* importance = nullptr) {
  const FormatTraits& traits = format_traits(format);
  const size_t num_blocks = values.size() / traits.block_elements;
  // One byte more than needed, to see that encode stops at the end.
  std::vector<std::byte> blocks(num_blocks * traits.block_bytes + 1, std::byte{0x5a});
  encoder_of(format)->encode(values.data(), importance, blocks.data(), num_blocks);
  EXPECT_EQ(blocks.back(), std::byte{0x5a});
  blocks.pop_back();
  return blocks;
}

std::vector<float> decode_all(Format format, const std::vector<std::byte>& blocks) {
  const FormatTraits& traits = format_traits(format);
  const size_t num_blocks = blocks.size() / traits.block_bytes;
  std::vector<float> values(num_blocks * traits.block_elements);
  traits.decode(blocks.data(), values.data(), num_blocks);
  return values;
}

std::vector<float> round_trip(Format format, const std::vector<float>& values,
                              const float* importance = nullptr) {
  return decode_all(format, encode_all(format, values, importance));
}

double squared_error(const std::vector<float>& a, const std::vector<float>& b,
                     const float* importance = nullptr) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double off = double{a[i]} - double{b[i]};
    sum += off * off * (importance != nullptr ? double{importance[i]} : 1.0);
  }
  return sum;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  return std::sqrt(squared_error(got, want) /
                   squared_error(want, std::vector<float>(want.size(), 0)));
}

/// Weights as models have them: tails heavier than a normal distribution's.
std::vector<float> weights(size_t count, uint64_t seed, float scale = 0.02f) {
  std::mt19937_64 random(seed);
  std::student_t_distribution<float> draw(6);
  std::vector<float> out(count);
  for (float& value : out) value = draw(random) * scale;
  return out;
}

std::vector<float> normal_weights(size_t count) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> draw;
  std::vector<float> out(count);
  for (float& value : out) value = draw(random) * 0.02f;
  return out;
}

/// Bits of a level, and weights with a scale of their own, of a format of integers.
struct Plain {
  int num_levels;
  int group;
  bool symmetric;
};

Plain plain_of(Format format) {
  switch (format) {
    case Format::q8_0:
      return {255, 32, true};
    case Format::q4_0:
      return {15, 32, true};
    case Format::q4_1:
      return {16, 32, false};
    case Format::q5_0:
      return {31, 32, true};
    case Format::q5_1:
      return {32, 32, false};
    case Format::iq4_nl:
      return {15, 32, true};
    case Format::q2_k:
      return {4, 16, false};
    case Format::q3_k:
      return {7, 16, true};
    case Format::q4_k:
      return {16, 32, false};
    case Format::q5_k:
      return {32, 32, false};
    case Format::q6_k:
      return {63, 16, true};
    default:
      return {0, 1, true};
  }
}

/// Each group's range, or largest magnitude, split evenly: exact scales, nothing else.
std::vector<float> plain_round_trip(const Plain& plain, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  for (size_t first = 0; first < values.size(); first += static_cast<size_t>(plain.group)) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    const auto [low, high] = std::minmax_element(begin, begin + plain.group);
    const float reach = std::max(std::fabs(*low), std::fabs(*high));
    const float base = plain.symmetric ? -reach : *low;
    const float step =
        (plain.symmetric ? 2 * reach : *high - *low) / static_cast<float>(plain.num_levels - 1);
    for (size_t i = first; i < first + static_cast<size_t>(plain.group); ++i) {
      out[i] = base + std::nearbyint((values[i] - base) / step) * step;
    }
  }
  return out;
}

std::vector<Format> encoded_formats() {
  std::vector<Format> out;
  for (const FormatTraits& traits : all_formats()) {
    if (encoder_of(traits.format) != nullptr) out.push_back(traits.format);
  }
  return out;
}

bool is_plain_number(Format format) {
  return format == Format::f32 || format == Format::f16 || format == Format::bf16;
}

class EncodeTest : public ::testing::TestWithParam<Format> {};

TEST_P(EncodeTest, IsNoWorseThanAnEvenSplitOfTheRange) {
  if (is_plain_number(GetParam())) GTEST_SKIP() << "no levels";
  for (const auto& values : {weights(256 * 64, 1), normal_weights(256 * 64)}) {
    const double error = relative_error(round_trip(GetParam(), values), values);
    const double plain = relative_error(plain_round_trip(plain_of(GetParam()), values), values);
    // The scales of the K formats are integers of 4 or 6 bits, those of the plain one exact.
    EXPECT_LE(error, plain * 1.002) << error << " of " << plain;
  }
}

TEST_P(EncodeTest, ZerosStayZeros) {
  const std::vector<float> zeros(512, 0.0f);
  for (const float value : round_trip(GetParam(), zeros)) EXPECT_EQ(value, 0.0f);
}

TEST_P(EncodeTest, EncodingTwiceIsLikeOnce) {
  const std::vector<float> once = round_trip(GetParam(), weights(256 * 32, 3));
  const std::vector<float> twice = round_trip(GetParam(), once);
  switch (GetParam()) {
    case Format::f32:
    case Format::f16:
    case Format::bf16:
    case Format::q8_0:
    case Format::q4_0:
    case Format::q5_0:
      EXPECT_EQ(once, twice);
      break;
    default:
      EXPECT_LE(relative_error(twice, once), 0.25 * relative_error(once, weights(256 * 32, 3)));
  }
}

TEST(Encoders, Q8_0IsFoundAgainExactlyAndItsScalesAreNotNegative) {
  const std::vector<float> values = weights(32 << 18, 11);
  std::vector<float> importance(values.size());
  std::mt19937_64 random(12);
  for (float& one : importance) {
    const double u = static_cast<double>(random() % 1000) / 1000;
    one = static_cast<float>(u * u);
  }
  const std::array<const float*, 2> importances = {nullptr, importance.data()};
  for (const float* with : importances) {
    const std::vector<std::byte> blocks = encode_all(Format::q8_0, values, with);
    for (size_t at = 0; at < blocks.size(); at += 34) {
      ASSERT_EQ(std::to_integer<int>(blocks[at + 1]) & 0x80, 0);
    }
    const std::vector<float> once = round_trip(Format::q8_0, values, with);
    ASSERT_EQ(round_trip(Format::q8_0, once, with), once);
  }
}

TEST_P(EncodeTest, ABlockDoesNotDependOnItsNeighbours) {
  const std::vector<float> values = weights(256 * 4, 4);
  const std::vector<std::byte> all = encode_all(GetParam(), values);
  std::vector<std::byte> parts;
  for (size_t first = 0; first < values.size(); first += 256) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    const auto part = encode_all(GetParam(), std::vector<float>(begin, begin + 256));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, parts);
}

TEST_P(EncodeTest, AnOutlierIsKeptAndNothingGetsLarger) {
  for (const float outlier : {8.0f, -8.0f}) {
    std::vector<float> values = weights(512, 5, 0.001f);
    values[77] = outlier;
    values[300] = outlier;
    const std::vector<float> got = round_trip(GetParam(), values);
    EXPECT_NEAR(got[77], outlier, 0.1f);
    EXPECT_NEAR(got[300], outlier, 0.1f);
    for (const float value : got) EXPECT_LE(std::fabs(value), 8.1f);
  }
}

TEST_P(EncodeTest, TinyAndHugeWeightsStayFinite) {
  const float most = encoder_of(GetParam())->max_magnitude;
  for (const float scale : {1e-40f, 1e-10f, 1e-7f, 1e-5f, most / 100}) {
    const std::vector<float> values = weights(512, 6, scale);
    const std::vector<float> got = round_trip(GetParam(), values);
    const float largest =
        std::fabs(*std::max_element(values.begin(), values.end(),
                                    [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << scale;
      // A scale of binary16 is zero below 2^-25.
      ASSERT_LE(std::fabs(got[i] - values[i]), largest * 0.6f + 0x1.0p-23f) << scale;
    }
    if (scale == 1e-5f) {
      EXPECT_LE(relative_error(got, values), 0.35);
    }
  }
}

TEST_P(EncodeTest, TheLargestMagnitudeIsReached) {
  const float most = encoder_of(GetParam())->max_magnitude;
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> values(256, 0.0f);
    values[5] = sign * most;
    const std::vector<float> got = round_trip(GetParam(), values);
    EXPECT_NEAR(got[5] / values[5], 1.0f, 0.02f);
  }
}

TEST_P(EncodeTest, WhatIsNoNumberIsFoundAndHarmless) {
  const Encoder& encoder = *encoder_of(GetParam());
  std::vector<float> values = weights(512, 7);
  EXPECT_EQ(find_unencodable(encoder, values), std::nullopt);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    for (const size_t place : {size_t{0}, size_t{63}, size_t{64}, size_t{511}}) {
      std::vector<float> broken = values;
      broken[place] = bad;
      EXPECT_EQ(find_unencodable(encoder, broken), place);
      for (const float value : round_trip(GetParam(), broken)) EXPECT_TRUE(std::isfinite(value));
    }
  }
  if (GetParam() == Format::f32) return;
  values[100] = std::nextafter(encoder.max_magnitude, kInfinity);
  EXPECT_EQ(find_unencodable(encoder, values), 100u);
}

TEST_P(EncodeTest, ImportantWeightsGetTheSmallerErrors) {
  if (is_plain_number(GetParam())) GTEST_SKIP() << "no choice";
  const std::vector<float> values = weights(256 * 64, 8);
  std::vector<float> importance(values.size());
  std::mt19937_64 random(9);
  for (float& one : importance) one = random() % 8 == 0 ? 100.0f : 0.1f;
  const double with =
      squared_error(round_trip(GetParam(), values, importance.data()), values, importance.data());
  const double without = squared_error(round_trip(GetParam(), values), values, importance.data());
  EXPECT_LT(with, without);
  // Broken importance counts as none.
  for (const float broken : {0.0f, std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
    std::fill(importance.begin(), importance.end(), broken);
    EXPECT_EQ(encode_all(GetParam(), values, importance.data()), encode_all(GetParam(), values));
  }
}

TEST_P(EncodeTest, ConstantsAreNearlyExact) {
  for (const float constant : {0.37f, -0.37f}) {
    const std::vector<float> values(256, constant);
    const double error = relative_error(round_trip(GetParam(), values), values);
    EXPECT_LE(error, GetParam() == Format::bf16 ? 0.004 : 0.002);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncodeTest, ::testing::ValuesIn(encoded_formats()),
                         [](const auto& test) {
                           return std::string(format_traits(test.param).name);
                         });

TEST(Encoders, AreThoseOfTheListedFormats) {
  for (const Format format : {Format::f32, Format::f16, Format::bf16, Format::q8_0, Format::q4_0,
                              Format::q4_1, Format::q5_0, Format::q5_1, Format::q2_k, Format::q3_k,
                              Format::q4_k, Format::q5_k, Format::q6_k, Format::iq4_nl}) {
    ASSERT_NE(encoder_of(format), nullptr);
    EXPECT_EQ(encoder_of(format)->format, format);
  }
  EXPECT_EQ(encoder_of(Format::mxfp4), nullptr);
}

}  // namespace
}  // namespace headrace
