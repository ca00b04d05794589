// The dot product of AVX2. maddubs multiplies u8 codes with s8 activations and adds pairs in int16
// with saturation, so how many such pairs may be added up before widening depends on the codes.
// With |x| <= 127 (QuantizedRows), the largest sum of n pairs is n * 2 * largest code * 127:
//   u4   8 pairs: 15 * 127 * 2 * 8 = 30 480
//   u5   4 pairs: 31 * 127 * 2 * 4 = 31 496
//   u6   2 pairs: 63 * 127 * 2 * 2 = 32 004
//   s8   1 pair, as |code| <= 128 times x with the code's sign: 128 * 127 * 2 = 32 512
// all at most 32 767.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights: with two vectors, 8 sums in registers.
constexpr int kMostRows = 4;

/// Signed codes need no offset here.
constexpr bool kFlipSigned = false;

/// Signed codes of many rows are multiplied in 16 bits.
constexpr bool kWidensSigned = true;

HEADRACE_INLINE vi zero() {
  return vi{};
}

template <class Codes>
constexpr int pairs_before_widening() {
  int n = 8;
  while (n * 2 * Codes::kLargest * 127 > 32767) n /= 2;
  return n;
}

template <class Codes>
HEADRACE_INLINE __m256i multiply_pairs(__m256i code, __m256i value) {
  if constexpr (Codes::kSigned) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(value, code));
  }
  return _mm256_maddubs_epi16(code, value);
}

template <class Codes, int kSteps>
HEADRACE_INLINE vi dot_row(const vu8* w, const int8_t* x) {
  constexpr int kMaxDepth = pairs_before_widening<Codes>();
  constexpr int kDepth = kMaxDepth < kSteps ? kMaxDepth : kSteps;
  vi dot = zero();
#pragma GCC unroll 8
  for (int first = 0; first < kSteps; first += kDepth) {
    __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int s = first; s < first + kDepth; ++s) {
      int32_t columns;
      std::memcpy(&columns, x + 4 * s, 4);
      const __m256i value = _mm256_set1_epi32(columns);
      pairs = _mm256_add_epi16(pairs, multiply_pairs<Codes>((__m256i)w[s], value));
    }
    dot += (vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  return dot;
}

template <class Codes, int kSteps, int kRows, int kVectors>
HEADRACE_INLINE void dot_rows(const vu8 (*w)[kVectors], const int8_t* x,
                              vi (&dot)[kRows][kVectors]) {
  constexpr int kMaxDepth = pairs_before_widening<Codes>();
  constexpr int kDepth = kMaxDepth < kSteps ? kMaxDepth : kSteps;
  static_assert(kDepth >= 1 && kSteps % kDepth == 0 && !Codes::kSigned);
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int first = 0; first < kSteps; first += kDepth) {
    __m256i pairs[kRows][kVectors];
#pragma GCC unroll 8
    for (int s = first; s < first + kDepth; ++s) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        int32_t columns;
        std::memcpy(&columns, x + 32 * r + 4 * s, 4);
        const __m256i value = _mm256_set1_epi32(columns);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const __m256i products = multiply_pairs<Codes>((__m256i)w[s][v], value);
          pairs[r][v] = s == first ? products : _mm256_add_epi16(pairs[r][v], products);
          // Keeps the order: else all products are made first, and spilled.
          asm volatile("" : "+x"(pairs[r][v]));
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        dot[r][v] += (vi)_mm256_madd_epi16(pairs[r][v], ones);
      }
    }
  }
}

/// A step's signed codes in 16 bits: columns 0 and 2 of each lane, and columns 1 and 3.
HEADRACE_INLINE void widen(vu8 codes, vu8& even, vu8& odd) {
  even = (vu8)_mm256_srai_epi16(_mm256_slli_epi16((__m256i)codes, 8), 8);
  odd = (vu8)_mm256_srai_epi16((__m256i)codes, 8);
}

/// Adds the products of 32 columns to dot[r][v]. w: [16] pairs of columns as widen() makes them.
/// x: QuantizedRows::whole, rows 32 columns apart. madd multiplies int16 and adds pairs in int32:
/// 32 products of at most 128 * (127 * 128 + 64) stay below 2^31.
template <int kRows, int kVectors>
HEADRACE_INLINE void dot_whole_rows(const vu8 (*w)[kVectors], const int16_t* x,
                                    vi (&dot)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int pair = 0; pair < 16; ++pair) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int32_t columns;
      std::memcpy(&columns, x + 32 * r + 2 * pair, sizeof(columns));
      const __m256i value = _mm256_set1_epi32(columns);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        dot[r][v] += (vi)_mm256_madd_epi16((__m256i)w[pair][v], value);
        // Keeps the order, as above.
        asm volatile("" : "+x"(dot[r][v]));
      }
    }
  }
}

}  // namespace
}  // namespace headrace
