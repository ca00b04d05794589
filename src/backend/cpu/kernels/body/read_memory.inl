// Reading memory and nothing else: the bound of what is limited by bandwidth.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

uint64_t read_memory(const std::byte* data, int64_t num_bytes, int64_t prefetch_bytes) {
  constexpr int64_t kLine = 64;
  vi sums[4][kParts] = {};
  for (int64_t i = 0; i < num_bytes; i += 4 * kLine) {
#pragma GCC unroll 4
    for (int64_t j = 0; j < 4; ++j) {
      const std::byte* const line = data + i + j * kLine;
      // A hint: an address past the end does no harm.
      if (prefetch_bytes > 0) __builtin_prefetch(line + prefetch_bytes);
        // Vector by vector: a copy of the whole line would go through memory.
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        vi value;
        std::memcpy(&value, line + part * static_cast<int64_t>(sizeof(vi)), sizeof(vi));
        sums[j][part] ^= value;
      }
    }
  }
  uint64_t folded = 0;
  for (const auto& sum : sums) {
    uint64_t words[8];
    std::memcpy(words, &sum, sizeof(words));
    for (const uint64_t word : words) folded ^= word;
  }
  return folded;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
