// Transposing 16 x 16 elements of 32 bits, four columns at a time.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

struct FourColumns {
  __m512 column[4];
};

/// Columns 0 to 3 of 16 rows that are 16 elements apart; rows aligned to 16 bytes.
HEADRACE_INLINE FourColumns transpose_four(const float* rows) {
  __m512 part[4];  // 128-bit lane l of part i: the four columns of row 4 l + i
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const float* at = rows + 16 * i;
    __m512 v = _mm512_castps128_ps512(_mm_load_ps(at));
    v = _mm512_insertf32x4(v, _mm_load_ps(at + 64), 1);
    v = _mm512_insertf32x4(v, _mm_load_ps(at + 128), 2);
    part[i] = _mm512_insertf32x4(v, _mm_load_ps(at + 192), 3);
  }
  const __m512d low_a = _mm512_castps_pd(_mm512_unpacklo_ps(part[0], part[1]));
  const __m512d high_a = _mm512_castps_pd(_mm512_unpackhi_ps(part[0], part[1]));
  const __m512d low_b = _mm512_castps_pd(_mm512_unpacklo_ps(part[2], part[3]));
  const __m512d high_b = _mm512_castps_pd(_mm512_unpackhi_ps(part[2], part[3]));
  return {{_mm512_castpd_ps(_mm512_unpacklo_pd(low_a, low_b)),
           _mm512_castpd_ps(_mm512_unpackhi_pd(low_a, low_b)),
           _mm512_castpd_ps(_mm512_unpacklo_pd(high_a, high_b)),
           _mm512_castpd_ps(_mm512_unpackhi_pd(high_a, high_b))}};
}

}  // namespace
}  // namespace headrace
