// The dot product of NEON without the dot-product extension. smull and smlal multiply signed bytes
// and add the products in int16, four columns of two rows a register; pairwise sums
// widen them. Codes of unsigned formats have at most 6 bits, so that all codes are signed bytes
// here. With |x| <= 127 (QuantizedRows), n products add up to at most n * largest code * 127:
//   u4   8 products: 15 * 127 * 8 = 15 240
//   u5   8 products: 31 * 127 * 8 = 31 496
//   u6   4 products: 63 * 127 * 4 = 32 004
//   s8   2 products: 128 * 127 * 2 = 32 512
// all at most 32 767.
#pragma once

#include <arm_neon.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights.
constexpr int kMostRows = 4;

/// Signed codes need no offset here.
constexpr bool kFlipSigned = false;
constexpr bool kWidensSigned = false;

HEADRACE_INLINE vi zero() {
  return vi{};
}

template <class Codes>
constexpr int products_before_widening() {
  int n = 8;
  while (n * Codes::kLargest * 127 > 32767) n /= 2;
  return n;
}

/// Four columns of x, four times.
HEADRACE_INLINE int8x16_t four_columns(const int8_t* x) {
  int32_t columns;
  std::memcpy(&columns, x, sizeof(columns));
  return vreinterpretq_s8_s32(vdupq_n_s32(columns));
}

/// Sums of products of four outputs, four columns apart from each other: two outputs each.
struct Products {
  int16x8_t first;
  int16x8_t second;
};

HEADRACE_INLINE Products multiply(int8x16_t w, int8x16_t x) {
  return {vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)};
}
HEADRACE_INLINE Products multiply_add(Products sum, int8x16_t w, int8x16_t x) {
  return {vmlal_s8(sum.first, vget_low_s8(w), vget_low_s8(x)), vmlal_high_s8(sum.second, w, x)};
}
/// The sums of four columns each.
HEADRACE_INLINE vi widen(Products sum) {
  return (vi)vpaddq_s32(vpaddlq_s16(sum.first), vpaddlq_s16(sum.second));
}

template <class Codes, int kSteps, int kRows, int kVectors>
HEADRACE_INLINE void dot_rows(const vu8 (*w)[kVectors], const int8_t* x,
                              vi (&dot)[kRows][kVectors]) {
  constexpr int kMaxDepth = products_before_widening<Codes>();
  constexpr int kDepth = kMaxDepth < kSteps ? kMaxDepth : kSteps;
  static_assert(kDepth >= 1 && kSteps % kDepth == 0);
  // One vector of outputs after the other: the products of all would not fit the registers.
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int first = 0; first < kSteps; first += kDepth) {
      Products sum[kRows];
#pragma GCC unroll 8
      for (int s = first; s < first + kDepth; ++s) {
        const auto codes = (int8x16_t)w[s][v];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const int8x16_t value = four_columns(x + 32 * r + 4 * s);
          sum[r] = s == first ? multiply(codes, value) : multiply_add(sum[r], codes, value);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) dot[r][v] += widen(sum[r]);
    }
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
