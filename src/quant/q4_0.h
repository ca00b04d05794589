// Q4_0: 32 weights of 4 bits with one scale; weight = d * (q - 8).
// Layout as decoded by PyPI's `gguf` (class Q4_0 of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ4_0 {
  uint16_t d;      ///< binary16 scale
  uint8_t qs[16];  ///< low nibble of qs[i]: weight i; high nibble: weight i + 16
};

/// Writes 32 floats.
static inline void decode_q4_0(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block.qs[i] & 0x0f) - 8);
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) - 8);
  }
}

}  // namespace headrace
