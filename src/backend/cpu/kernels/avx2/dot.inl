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

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// Rows of activations that share one unpacking of the weights.
constexpr int kRowsTogether = 4;

/// Signed codes need no offset here.
constexpr int kSignedOffset = 0;

template <class Codes>
constexpr int pairs_before_widening() {
  int n = 8;
  while (n * 2 * Codes::kLargest * 127 > 32767) n /= 2;
  return n;
}

template <class Codes, int kSteps, class Bytes>
HEADRACE_INLINE vi dot_steps(const Bytes* w, const int8_t* x) {
  constexpr int kMaxDepth = pairs_before_widening<Codes>();
  constexpr int kDepth = kMaxDepth < kSteps ? kMaxDepth : kSteps;
  static_assert(kDepth >= 1 && kSteps % kDepth == 0);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i total = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int first = 0; first < kSteps; first += kDepth) {
    __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int s = first; s < first + kDepth; ++s) {
      int32_t columns;
      std::memcpy(&columns, x + 4 * s, 4);
      __m256i code = (__m256i)w[s];
      __m256i value = _mm256_set1_epi32(columns);
      if constexpr (Codes::kSigned) {
        value = _mm256_sign_epi8(value, code);
        code = _mm256_abs_epi8(code);
      }
      pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(code, value));
    }
    total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, ones));
  }
  return (vi)total;
}

}  // namespace
}  // namespace headrace
