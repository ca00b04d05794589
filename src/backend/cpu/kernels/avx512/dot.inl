// The dot product of AVX-512 VNNI: u8 codes times s8 activations, four columns at once into int32,
// without saturation.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// Rows of activations that share one unpacking of the weights: sums and weights fit 32 registers.
constexpr int kRowsTogether = 8;

/// Signed codes are multiplied as code + 128; kernels of such formats take off 128 * (sum of x).
constexpr int kSignedOffset = 128;

/// No overflow: kSteps * 4 products of at most 255 * 127 each stay below 2^31.
template <class Codes, int kSteps, class Bytes>
HEADRACE_INLINE vi dot_steps(const Bytes* w, const int8_t* x) {
  __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
    int32_t columns;
    std::memcpy(&columns, x + 4 * s, 4);
    const Bytes code = Codes::kSigned ? w[s] ^ 0x80 : w[s];
    sum = _mm512_dpbusd_epi32(sum, (__m512i)code, _mm512_set1_epi32(columns));
  }
  return (vi)sum;
}

}  // namespace
}  // namespace headrace
