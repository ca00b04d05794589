// The dot product of NEON with the dot-product extension: sdot multiplies signed bytes, four
// columns at once into int32. Codes of unsigned formats have at most 6 bits, so that all codes are
// signed bytes here, and usdot (signed times unsigned) has nothing to add. The sums are those of
// dot.inl, bit for bit.
#pragma once

#include <arm_neon.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights: with four vectors, 16 sums in registers.
constexpr int kMostRows = 4;

/// Signed codes need no offset here.
constexpr bool kFlipSigned = false;
constexpr bool kWidensSigned = false;

HEADRACE_INLINE vi zero() {
  return vi{};
}

/// One step of all rows: columns 4 kStep to 4 kStep + 3 of each row's 16.
template <int kStep, int kRows, int kVectors>
HEADRACE_INLINE void dot_step(const vu8* w, const int8x16_t* x, vi (&dot)[kRows][kVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      dot[r][v] = (vi)vdotq_laneq_s32((int32x4_t)dot[r][v], (int8x16_t)w[v], x[r], kStep);
    }
  }
}

/// No overflow: 32 products of at most 128 * 127 stay below 2^31.
template <class Codes, int kSteps, int kRows, int kVectors>
HEADRACE_INLINE void dot_rows(const vu8 (*w)[kVectors], const int8_t* x,
                              vi (&dot)[kRows][kVectors]) {
  static_assert(kSteps % 4 == 0);
#pragma GCC unroll 2
  for (int s = 0; s < kSteps; s += 4) {
    int8x16_t values[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) values[r] = vld1q_s8(x + 32 * r + 4 * s);
    dot_step<0>(w[s], values, dot);
    dot_step<1>(w[s + 1], values, dot);
    dot_step<2>(w[s + 2], values, dot);
    dot_step<3>(w[s + 3], values, dot);
  }
}

template <class Codes, int kSteps>
HEADRACE_INLINE vi dot_row(const vu8* w, const int8_t* x) {
  vi dot[1][1] = {{zero()}};
  dot_rows<Codes, kSteps, 1, 1>(reinterpret_cast<const vu8(*)[1]>(w), x, dot);
  return dot[0][0];
}

}  // namespace
}  // namespace headrace
