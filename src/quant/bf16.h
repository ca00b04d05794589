// BF16: bfloat16, the upper 16 bits of a binary32, little-endian.
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace headrace {

struct BlockBF16 {
  uint16_t value;
};

/// Writes one float.
static inline void decode_bf16(const BlockBF16& block, float* out) {
  out[0] = bf16_to_f32(block.value);
}

}  // namespace headrace
