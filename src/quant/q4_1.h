// Q4_1: 32 weights of 4 bits with a scale and a minimum; weight = d * q + m.
// Layout as decoded by PyPI's `gguf` (class Q4_1 of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ4_1 {
  uint16_t d;      ///< binary16 scale
  uint16_t m;      ///< binary16 minimum
  uint8_t qs[16];  ///< low nibble of qs[i]: weight i; high nibble: weight i + 16
};

/// Writes 32 floats.
static inline void decode_q4_1(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(block.qs[i] & 0x0f) + m;
    out[i + 16] = d * static_cast<float>(block.qs[i] >> 4) + m;
  }
}

}  // namespace headrace
