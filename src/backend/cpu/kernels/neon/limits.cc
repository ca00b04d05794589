// What the NEON path can do at most: products of bytes added to int16. Widening to int32 comes on
// top of that and is left out.
#include <arm_neon.h>

#include "backend/cpu/kernels/body/read_memory.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink) {
  constexpr int kChains = 16;
  const int8x8_t codes = vdup_n_s8(3);
  const int8x8_t x = vdup_n_s8(1);
  int16x8_t sums[kChains];
  // From memory: chains that are known to be equal would become one.
  for (int c = 0; c < kChains; ++c) sums[c] = vdupq_n_s16(static_cast<int16_t>(sink[c]));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) {
      sums[c] = vmlal_s8(sums[c], codes, x);
      // Many rounds of the same product would become one multiplication.
      asm volatile("" : "+w"(sums[c]));
    }
  }
  for (const int16x8_t& sum : sums) sink[0] += static_cast<float>(vgetq_lane_s16(sum, 0));
  return rounds * kChains * 8;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
