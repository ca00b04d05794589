// The dot product of AVX-512 VNNI: u8 codes times s8 activations, four columns at once into int32,
// without saturation.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights: with two panels, 16 sums in registers.
constexpr int kMostRows = 8;

/// Signed codes are multiplied as code + 128.
constexpr bool kFlipSigned = true;

/// A zero that the compiler does not copy from another register.
HEADRACE_INLINE vi zero() {
  __m512i z;
  asm volatile("vpxord %0, %0, %0" : "=v"(z));
  return (vi)z;
}

/// No overflow: 32 products of at most 255 * 127 stay below 2^31.
template <class Codes, int kSteps>
HEADRACE_INLINE vi dot_row(const vu8* w, const int8_t* x) {
  vi dot = zero();
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    int32_t columns;
    std::memcpy(&columns, x + 4 * s, 4);
    dot = (vi)_mm512_dpbusd_epi32((__m512i)dot, (__m512i)w[s], _mm512_set1_epi32(columns));
  }
  return dot;
}

template <class Codes, int kSteps, int kRows, int kVectors>
HEADRACE_INLINE void dot_rows(const vu8 (*w)[kVectors], const int8_t* x,
                              vi (&dot)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int32_t columns;
      std::memcpy(&columns, x + 32 * r + 4 * s, 4);
      __m512i value = _mm512_set1_epi32(columns);
      // One load for both vectors.
      asm volatile("" : "+v"(value));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        dot[r][v] = (vi)_mm512_dpbusd_epi32((__m512i)dot[r][v], (__m512i)w[s][v], value);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
