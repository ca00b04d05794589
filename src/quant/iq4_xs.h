// IQ4_XS: 256 weights of 4 bits in 8 groups of 32; weight = d * (scale - 32) * kIq4Values[q] with a
// 6-bit scale a group. Layout as decoded by PyPI's `gguf` (class IQ4_XS of quants.py).
#pragma once

#include <cstdint>

#include "quant/iq4_nl.h"
#include "tensor/half.h"

namespace headrace {

struct BlockIQ4_XS {
  uint16_t d;           ///< binary16 factor of the scales
  uint16_t scales_h;    ///< group g: bits 2 * g and up are the scale's two high bits
  uint8_t scales_l[4];  ///< group g: byte g / 2, low nibble first: the scale's four low bits
  uint8_t qs[128];      ///< group g: bytes 16 g to 16 g + 15, laid out as in IQ4_NL
};

/// Writes 256 floats.
static inline void decode_iq4_xs(const BlockIQ4_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int group = 0; group < 8; ++group) {
    const int low = (block.scales_l[group / 2] >> (group % 2 * 4)) & 0x0f;
    const int high = (block.scales_h >> (2 * group)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const uint8_t* qs = block.qs + group * 16;
    for (int i = 0; i < 16; ++i) {
      out[group * 32 + i] = scale * static_cast<float>(kIq4Values[qs[i] & 0x0f]);
      out[group * 32 + i + 16] = scale * static_cast<float>(kIq4Values[qs[i] >> 4]);
    }
  }
}

}  // namespace headrace
