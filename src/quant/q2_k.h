// Q2_K: 256 weights of 2 bits in 16 groups of 16; weight = d * scale * q - dmin * min, with a 4-bit
// scale and min a group. Layout as decoded by PyPI's `gguf` (class Q2_K of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ2_K {
  uint8_t scales[16];  ///< group g: scale in the low nibble, min in the high nibble
  uint8_t qs[64];      ///< weight i: byte i / 128 * 32 + i % 32, bits 2 * (i / 32 % 4) and up
  uint16_t d;          ///< binary16 factor of the scales
  uint16_t dmin;       ///< binary16 factor of the mins
};

/// Writes 256 floats.
static inline void decode_q2_k(const BlockQ2_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(block.scales[group] & 0x0f);
    const float min = dmin * static_cast<float>(block.scales[group] >> 4);
    const int first = group * 16;
    const uint8_t* qs = block.qs + first / 128 * 32 + first % 32;
    const int shift = 2 * (first / 32 % 4);
    for (int i = 0; i < 16; ++i) {
      out[first + i] = scale * static_cast<float>((qs[i] >> shift) & 3) - min;
    }
  }
}

}  // namespace headrace
