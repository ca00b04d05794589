// Q3_K: 256 weights of 3 bits in 16 groups of 16; weight = d * (scale - 32) * q with a 6-bit scale
// a group and q in -4..3. Layout as decoded by PyPI's `gguf` (class Q3_K of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ3_K {
  uint8_t hmask[32];   ///< weight i: byte i % 32, bit i / 32; a clear bit subtracts 4
  uint8_t qs[64];      ///< weight i: byte i / 128 * 32 + i % 32, bits 2 * (i / 32 % 4) and up
  uint8_t scales[12];  ///< 16 scales of 6 bits, see q3_k_scale
  uint16_t d;          ///< binary16 factor of the scales
};

/// The scale of group 0..15, in -32..31: four low bits in the nibbles of bytes 0..7 (low nibbles
/// first), two high bits in bytes 8..11 (group g: byte 8 + g % 4, bits 2 * (g / 4) and up).
static inline int q3_k_scale(const BlockQ3_K& block, int group) {
  const int low = (block.scales[group % 8] >> (group / 8 * 4)) & 0x0f;
  const int high = (block.scales[8 + group % 4] >> (group / 4 * 2)) & 3;
  return (low | high << 4) - 32;
}

/// Writes 256 floats.
static inline void decode_q3_k(const BlockQ3_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(q3_k_scale(block, group));
    const int first = group * 16;
    const uint8_t* qs = block.qs + first / 128 * 32 + first % 32;
    const uint8_t* hmask = block.hmask + first % 32;
    const int shift = 2 * (first / 32 % 4);
    for (int i = 0; i < 16; ++i) {
      const int offset = (hmask[i] >> (first / 32)) & 1 ? 0 : 4;
      out[first + i] = scale * static_cast<float>(((qs[i] >> shift) & 3) - offset);
    }
  }
}

}  // namespace headrace
