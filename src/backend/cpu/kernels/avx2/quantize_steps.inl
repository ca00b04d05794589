// Steps of quantising activations for AVX2, see body/quantize.inl.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

HEADRACE_INLINE int32_t largest_magnitude_bits(F16x a, F16x b) {
  __m256i largest = _mm256_setzero_si256();
  const __m256i magnitude = _mm256_set1_epi32(INT32_MAX);
  __m256i parts[4];
  std::memcpy(parts, &a, sizeof(a));
  std::memcpy(parts + 2, &b, sizeof(b));
  for (const __m256i part : parts) {
    largest = _mm256_max_epi32(largest, _mm256_and_si256(part, magnitude));
  }
  __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

HEADRACE_INLINE __m128i to_bytes(I16x x) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32((__m256i)x.p[0], (__m256i)x.p[1]), _MM_SHUFFLE(3, 1, 2, 0));
  return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

HEADRACE_INLINE void store_bytes(I16x a, I16x b, int8_t* out, int32_t* sum_a, int32_t* sum_b) {
  const __m256i bytes = _mm256_set_m128i(to_bytes(b), to_bytes(a));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
  *sum_a = _mm256_cvtsi256_si32(sums);
  *sum_b = _mm256_extract_epi32(sums, 4);
}

/// Sixteen integers of at most 16 bits.
HEADRACE_INLINE void store_words(I16x x, int shift, int16_t* out) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32((__m256i)(x.p[0] << shift), (__m256i)(x.p[1] << shift)),
      _MM_SHUFFLE(3, 1, 2, 0));
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1,
                                         4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_shuffle_epi8(words, order));
}

HEADRACE_INLINE void store_whole(I16x a, I16x b, int shift, int16_t* out) {
  store_words(a, shift, out);
  store_words(b, shift, out + 16);
}

}  // namespace
}  // namespace headrace
