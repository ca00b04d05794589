// What the AVX2 path can do at most: products of bytes, added in pairs, and one addition for each
// such instruction. Widening to int32 comes on top of that and is left out.
#include <immintrin.h>

#include "backend/cpu/kernels/body/read_memory.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink) {
  constexpr int kChains = 8;
  const __m256i x = _mm256_set1_epi8(1);
  __m256i codes = _mm256_set1_epi8(3);
  __m256i sums[kChains];
  // From memory: chains that are known to be equal would become one.
  for (int c = 0; c < kChains; ++c) sums[c] = _mm256_set1_epi32(static_cast<int>(sink[c]));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kChains; ++c) {
      // The product would be the same every time: this hides that from the compiler.
      asm volatile("" : "+x"(codes));
      sums[c] = _mm256_add_epi16(sums[c], _mm256_maddubs_epi16(codes, x));
    }
  }
  for (const __m256i& sum : sums) sink[0] += static_cast<float>(_mm256_extract_epi32(sum, 0));
  return rounds * kChains * 32;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
