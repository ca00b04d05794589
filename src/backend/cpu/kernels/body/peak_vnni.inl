// What a path with VNNI can do at most: products of bytes added to int32, four a lane, by one
// instruction. The including file has add_products and broadcast before this one, see dot_vnni.inl.
#pragma once

#include "backend/cpu/kernels/body/codes.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink) {
  // Enough to hide the latency, and few enough for the registers.
  constexpr int kChains = HEADRACE_LANES == 16 ? 16 : 12;
  const vu8 codes = vu8{} + uint8_t{3};
  const vi x = broadcast(0x01010101);
  vi sums[kChains];
  // From memory: chains that are known to be equal would become one.
  for (int c = 0; c < kChains; ++c) sums[c] = broadcast(static_cast<int>(sink[c]));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) sums[c] = add_products(sums[c], codes, x);
  }
  for (const vi& sum : sums) sink[0] += static_cast<float>(sum[0]);
  return rounds * kChains * 4 * HEADRACE_LANES;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
