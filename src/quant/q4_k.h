// Q4_K: 256 weights of 4 bits in 8 groups of 32; weight = d * scale * q - dmin * min, with a 6-bit
// scale and min a group. Layout as decoded by PyPI's `gguf` (class Q4_K of quants.py).
#pragma once

#include <cstdint>

#include "quant/k_scales.h"
#include "tensor/half.h"

namespace headrace {

struct BlockQ4_K {
  uint16_t d;          ///< binary16 factor of the scales
  uint16_t dmin;       ///< binary16 factor of the mins
  uint8_t scales[12];  ///< 8 scales and 8 mins of 6 bits, see k_scale_min
  uint8_t qs[128];     ///< weight i: byte i / 64 * 32 + i % 32, low nibble first
};

/// Writes 256 floats.
static inline void decode_q4_k(const BlockQ4_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int group = 0; group < 8; ++group) {
    const KScaleMin packed = k_scale_min(block.scales, group);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    const uint8_t* qs = block.qs + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      out[group * 32 + i] = scale * static_cast<float>((qs[i] >> shift) & 0x0f) - min;
    }
  }
}

}  // namespace headrace
