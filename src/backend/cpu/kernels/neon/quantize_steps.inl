// Steps of quantising activations for NEON, see body/quantize.inl.
#pragma once

#include <arm_neon.h>

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

HEADRACE_INLINE int32_t largest_magnitude_bits(F16x a, F16x b) {
  const int32x4_t magnitude = vdupq_n_s32(INT32_MAX);
  int32x4_t largest = vdupq_n_s32(0);
  HEADRACE_EACH {
    largest = vmaxq_s32(largest, vandq_s32((int32x4_t)a.p[i], magnitude));
    largest = vmaxq_s32(largest, vandq_s32((int32x4_t)b.p[i], magnitude));
  }
  return vmaxvq_s32(largest);
}

/// Sixteen bytes.
HEADRACE_INLINE int8x16_t to_bytes(I16x x) {
  const int16x8_t first = vmovn_high_s32(vmovn_s32((int32x4_t)x.p[0]), (int32x4_t)x.p[1]);
  const int16x8_t second = vmovn_high_s32(vmovn_s32((int32x4_t)x.p[2]), (int32x4_t)x.p[3]);
  return vmovn_high_s16(vmovn_s16(first), second);
}

HEADRACE_INLINE void store_bytes(I16x a, I16x b, int8_t* out, int32_t* sum_a, int32_t* sum_b) {
  vst1q_s8(out, to_bytes(a));
  vst1q_s8(out + 16, to_bytes(b));
  *sum_a = vaddvq_s32((int32x4_t)(a.p[0] + a.p[1] + a.p[2] + a.p[3]));
  *sum_b = vaddvq_s32((int32x4_t)(b.p[0] + b.p[1] + b.p[2] + b.p[3]));
}

/// No table of NEON needs it.
HEADRACE_INLINE void store_whole(I16x, I16x, int, int16_t*) {}

}  // namespace
}  // namespace headrace
