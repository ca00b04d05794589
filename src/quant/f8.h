// 8-bit floats: one sign, four exponent (bias 7) and three mantissa bits, no infinities; NaN is all
// ones but for the sign (OCP 8-bit floating point specification, E4M3).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace headrace {

/// NaN for the two NaNs.
inline float e4m3_to_f32(uint8_t byte) {
  const int exponent = (byte >> 3) & 0x0f;
  const int mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (byte & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace headrace
