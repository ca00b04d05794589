// Q6_K: 256 weights of 6 bits in 16 groups of 16; weight = d * scale * (q - 32) with an 8-bit
// signed scale a group. Layout as decoded by PyPI's `gguf` (class Q6_K of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ6_K {
  uint8_t ql[128];    ///< weight i: byte i / 128 * 64 + i % 64, nibble i / 64 % 2 (low first)
  uint8_t qh[64];     ///< weight i: byte i / 128 * 32 + i % 32, bits 2 * (i / 32 % 4) and up
  int8_t scales[16];  ///< group g: weights 16 g to 16 g + 15
  uint16_t d;         ///< binary16 factor of the scales
};

/// Writes 256 floats.
static inline void decode_q6_k(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(block.scales[group]);
    const int first = group * 16;
    const uint8_t* ql = block.ql + first / 128 * 64 + first % 64;
    const uint8_t* qh = block.qh + first / 128 * 32 + first % 32;
    const int low_shift = first / 64 % 2 * 4;
    const int high_shift = first / 32 % 4 * 2;
    for (int i = 0; i < 16; ++i) {
      const int q = ((ql[i] >> low_shift) & 0x0f) | ((qh[i] >> high_shift) & 3) << 4;
      out[first + i] = scale * static_cast<float>(q - 32);
    }
  }
}

}  // namespace headrace
