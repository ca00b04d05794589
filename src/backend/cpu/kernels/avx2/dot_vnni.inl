// The dot product of AVX2 where the processor has AVX-VNNI: u8 codes times s8 activations, four
// columns at once into int32, without saturation. The sums are those of dot.inl, bit for bit.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights: with two vectors, 8 sums in registers.
constexpr int kMostRows = 4;

/// Signed codes are multiplied as code + 128.
constexpr bool kFlipSigned = true;

HEADRACE_INLINE vi zero() {
  return vi{};
}

/// No overflow: 32 products of at most 255 * 127 stay below 2^31.
template <class Codes, int kSteps>
HEADRACE_INLINE vi dot_row(const vu8* w, const int8_t* x) {
  vi dot = zero();
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    int32_t columns;
    std::memcpy(&columns, x + 4 * s, 4);
    dot = (vi)_mm256_dpbusd_avx_epi32((__m256i)dot, (__m256i)w[s], _mm256_set1_epi32(columns));
  }
  return dot;
}

template <class Codes, int kSteps, int kRows, int kVectors>
HEADRACE_INLINE void dot_rows(const vu8 (*w)[kVectors], const int8_t* x,
                              vi (&dot)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int32_t columns;
      std::memcpy(&columns, x + 32 * r + 4 * s, 4);
      __m256i value = _mm256_set1_epi32(columns);
      // One load for both vectors.
      asm volatile("" : "+x"(value));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        dot[r][v] = (vi)_mm256_dpbusd_avx_epi32((__m256i)dot[r][v], (__m256i)w[s][v], value);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
