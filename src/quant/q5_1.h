// Q5_1: 32 weights of 5 bits with a scale and a minimum; weight = d * q + m.
// Layout as decoded by PyPI's `gguf` (class Q5_1 of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ5_1 {
  uint16_t d;      ///< binary16 scale
  uint16_t m;      ///< binary16 minimum
  uint8_t qh[4];   ///< bit i of this little-endian word: the fifth bit of weight i
  uint8_t qs[16];  ///< low nibble of qs[i]: weight i; high nibble: weight i + 16
};

/// Writes 32 floats.
static inline void decode_q5_1(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    const int low_bit = (block.qh[i / 8] >> (i % 8)) & 1;
    const int high_bit = (block.qh[2 + i / 8] >> (i % 8)) & 1;
    out[i] = d * static_cast<float>((block.qs[i] & 0x0f) | low_bit << 4) + m;
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) | high_bit << 4) + m;
  }
}

}  // namespace headrace
