// What the reference path can do at most: a multiplication and an addition of floats.
#include "backend/cpu/kernels/body/read_memory.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  const vf factor = 0.5F - vf{};
  const vf addend = 1.0F - vf{};
  vf sums[kChains];
  // From memory: chains that are known to be equal would become one.
  for (int c = 0; c < kChains; ++c) sums[c] = sink[c] - vf{};
  for (int64_t r = 0; r < rounds; ++r) {
    // Each step needs the one before, so that no product can be taken out of the loop.
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + addend;
  }
  for (const vf& sum : sums) {
    for (int i = 0; i < HEADRACE_LANES; ++i) sink[i] += sum[i];
  }
  return rounds * kChains * HEADRACE_LANES;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
