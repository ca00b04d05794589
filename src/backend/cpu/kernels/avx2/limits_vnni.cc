// What the AVX2 path with AVX-VNNI can do at most: 32 products of bytes added to int32 by one
// instruction.
#include <immintrin.h>

#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  const __m256i codes = _mm256_set1_epi8(3);
  const __m256i x = _mm256_set1_epi8(1);
  __m256i sums[kChains];
  // From memory: chains that are known to be equal would become one.
  for (int c = 0; c < kChains; ++c) sums[c] = _mm256_set1_epi32(static_cast<int>(sink[c]));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_dpbusd_avx_epi32(sums[c], codes, x);
  }
  for (const __m256i& sum : sums) sink[0] += static_cast<float>(_mm256_extract_epi32(sum, 0));
  return rounds * kChains * 32;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
