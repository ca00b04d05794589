// Reading memory and nothing else: the bound of what is limited by bandwidth.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

uint64_t read_memory(const std::byte* data, int64_t num_bytes, int64_t prefetch_bytes) {
  constexpr int64_t kLine = 64;
  I16x sums[4] = {};
  for (int64_t i = 0; i < num_bytes; i += 4 * kLine) {
    for (int64_t j = 0; j < 4; ++j) {
      const std::byte* const line = data + i + j * kLine;
      // A hint: an address past the end does no harm.
      if (prefetch_bytes > 0) __builtin_prefetch(line + prefetch_bytes);
      I16x values;
      std::memcpy(&values, line, sizeof(values));
      for (int part = 0; part < kParts; ++part) sums[j].p[part] ^= values.p[part];
    }
  }
  uint64_t folded = 0;
  for (const I16x& sum : sums) {
    uint64_t words[8];
    std::memcpy(words, &sum, sizeof(words));
    for (const uint64_t word : words) folded ^= word;
  }
  return folded;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
