// What the NEON path can do at most with the dot-product extension: 16 products of bytes added to
// int32 by one instruction.
#include <arm_neon.h>

#include <cstdint>

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink);

int64_t peak(int64_t rounds, float* sink) {
  constexpr int kChains = 16;
  const int8x16_t codes = vdupq_n_s8(3);
  const int8x16_t x = vdupq_n_s8(1);
  int32x4_t sums[kChains];
  // From memory: chains that are known to be equal would become one.
  for (int c = 0; c < kChains; ++c) sums[c] = vdupq_n_s32(static_cast<int>(sink[c]));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) {
      sums[c] = vdotq_s32(sums[c], codes, x);
      // Many rounds of the same product would become one multiplication.
      asm volatile("" : "+w"(sums[c]));
    }
  }
  for (const int32x4_t& sum : sums) sink[0] += static_cast<float>(vgetq_lane_s32(sum, 0));
  return rounds * kChains * 16;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
