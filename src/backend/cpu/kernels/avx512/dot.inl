// The dot product of AVX-512 VNNI.
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/body/codes.inl"

namespace headrace {
namespace {

/// Rows of activations that share a load of weights: with two panels, 16 sums in registers.
constexpr int kMostRows = 8;

/// A zero that the compiler does not copy from another register.
HEADRACE_INLINE vi zero() {
  __m512i z;
  asm volatile("vpxord %0, %0, %0" : "=v"(z));
  return (vi)z;
}

HEADRACE_INLINE vi broadcast(int32_t columns) {
  return (vi)_mm512_set1_epi32(columns);
}

HEADRACE_INLINE vi add_products(vi dot, vu8 codes, vi columns) {
  return (vi)_mm512_dpbusd_epi32((__m512i)dot, (__m512i)codes, (__m512i)columns);
}

}  // namespace
}  // namespace headrace

#include "backend/cpu/kernels/body/dot_vnni.inl"
