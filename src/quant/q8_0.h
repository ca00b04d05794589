// Q8_0: 32 weights of 8 bits with one scale; weight = d * q.
// Layout as decoded by PyPI's `gguf` (class Q8_0 of quants.py).
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockQ8_0 {
  uint16_t d;     ///< binary16 scale
  int8_t qs[32];  ///< qs[i]: weight i
};

/// Writes 32 floats.
static inline void decode_q8_0(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

}  // namespace headrace
