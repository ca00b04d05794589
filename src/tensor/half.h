// Scalar conversions between the 16-bit float formats and float32. Exact from 16 to 32 bits;
// rounded to nearest, ties to even, from 32 to 16. Plain C++, internal linkage: instruction-set
// files may include this.
#pragma once

#include <cstdint>

namespace headrace {

/// IEEE 754 binary16 to float32: exact, subnormals and infinities included; a NaN keeps its
/// payload.
static constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24, both factors exact.
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xffu : exponent + (127 - 15);
  return __builtin_bit_cast(float, sign | wide << 23 | mantissa << 13);
}

/// float32 to IEEE 754 binary16. Too large becomes infinity, a NaN stays a (quiet) NaN.
static constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x1ffu);
  } else if (magnitude >= 0x47800000u) {  // 2^16: no binary16 is that large
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // 2^-14: the result is subnormal or zero
    // 0.5f has its unit in the last place at 2^-24, the subnormals' spacing: the addition rounds.
    const float rounded = __builtin_bit_cast(float, magnitude) + 0.5f;
    half = __builtin_bit_cast(uint32_t, rounded) - 0x3f000000u;
  } else {
    // Moves the exponent's bias, and rounds by adding just under half a unit (half if odd). A carry
    // into the exponent is right, up to infinity.
    const uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude - ((127u - 15u) << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

/// bfloat16 (the upper half of a float32) to float32: exact.
static constexpr float bf16_to_f32(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

/// float32 to bfloat16. A NaN stays a (quiet) NaN.
static constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace headrace
