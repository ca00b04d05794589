// Scales as binary16 numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tensor/half.h"

namespace headrace {

/// The largest finite binary16.
static constexpr float kMaxHalf = 65504.0f;
/// Below this magnitude binary16 numbers are coarser than their usual 11 bits.
static constexpr float kSmallestFullHalf = 0x1.0p-14f;

/// The nearest finite binary16.
static inline uint16_t half_of(float value) {
  return f32_to_f16(std::clamp(value, -kMaxHalf, kMaxHalf));
}

/// The binary16 next to `half`, away from zero; the largest stays.
static inline uint16_t next_half(uint16_t half) {
  return (half & 0x7fff) < 0x7bff ? static_cast<uint16_t>(half + 1) : half;
}

/// The binary16 of least magnitude that is no smaller than `value`, but for the rounding of full
/// ones.
static inline uint16_t half_reaching(float value) {
  const uint16_t half = half_of(value);
  return std::fabs(value) > std::fabs(f16_to_f32(half)) * (1 + 0x1.0p-9f) ? next_half(half) : half;
}

}  // namespace headrace
