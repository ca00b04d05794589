// IQ4_NL: 32 weights of 4 bits that index a fixed non-linear table; weight = d * kIq4Values[q].
// Layout and table as in PyPI's `gguf` (class IQ4_NL of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

/// The levels of IQ4_NL and IQ4_XS, denser around zero.
static constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

struct BlockIQ4_NL {
  uint16_t d;      ///< binary16 scale
  uint8_t qs[16];  ///< low nibble of qs[i]: weight i; high nibble: weight i + 16
};

/// Writes 32 floats.
static inline void decode_iq4_nl(const BlockIQ4_NL& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kIq4Values[block.qs[i] & 0x0f]);
    out[i + 16] = d * static_cast<float>(kIq4Values[block.qs[i] >> 4]);
  }
}

}  // namespace headrace
