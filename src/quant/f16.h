// F16: plain IEEE 754 binary16, little-endian.
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockF16 {
  uint16_t value;
};

/// Writes one float.
static inline void decode_f16(const BlockF16& block, float* out) {
  out[0] = f16_to_f32(block.value);
}

}  // namespace headrace
