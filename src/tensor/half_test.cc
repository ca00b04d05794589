#include "tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace headrace {
namespace {

// The value of a finite binary16 by its definition, in double.
double half_value(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int mantissa = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryBinary16HasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (((half >> 10) & 0x1f) == 0x1f) {
      EXPECT_EQ(std::bit_cast<uint32_t>(wide),
                (bits & 0x8000) << 16 | 0x7f800000u | (bits & 0x3ff) << 13);
      if ((half & 0x3ff) != 0) {
        EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide))));
        continue;
      }
    } else {
      EXPECT_EQ(static_cast<double>(wide), half_value(half));
      EXPECT_EQ(std::signbit(wide), (half & 0x8000) != 0);
    }
    EXPECT_EQ(f32_to_f16(wide), half);
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  // Between every two neighbours, up to the step from the largest to "65536": the middle goes to
  // the even one, a hair to either side goes to that side.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const double high_value = high == 0x7c00 ? 65536.0 : half_value(high);
    const auto middle = static_cast<float>((half_value(low) + high_value) / 2);
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(f32_to_f16(middle), (bits & 1) == 0 ? low : high);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), low);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, infinity)), high);
    EXPECT_EQ(f32_to_f16(-middle), 0x8000 | ((bits & 1) == 0 ? low : high));
  }
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bfloat16, EveryValueComesBackAndRoundingIsToEven) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto narrow = static_cast<uint16_t>(bits);
    const float wide = bf16_to_f32(narrow);
    EXPECT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(wide))));
    } else {
      EXPECT_EQ(f32_to_bf16(wide), narrow);
    }
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  // A NaN whose payload lies in the lower half must not turn into infinity.
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace headrace
