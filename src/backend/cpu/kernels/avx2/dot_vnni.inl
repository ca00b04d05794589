// The dot product of AVX2 where the processor has AVX-VNNI. The sums are those of dot.inl, bit for
// bit.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights: with two vectors, 8 sums in registers.
constexpr int kMostRows = 4;

HEADRACE_INLINE vi zero() {
  return vi{};
}

HEADRACE_INLINE vi broadcast(int32_t columns) {
  return (vi)_mm256_set1_epi32(columns);
}

HEADRACE_INLINE vi add_products(vi dot, vu8 codes, vi columns) {
  return (vi)_mm256_dpbusd_avx_epi32((__m256i)dot, (__m256i)codes, (__m256i)columns);
}

}  // namespace
}  // namespace headrace

#include "backend/cpu/kernels/body/dot_vnni.inl"
