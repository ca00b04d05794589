// F32: plain IEEE 754 binary32, little-endian.
#pragma once

namespace headrace {

struct BlockF32 {
  float value;
};

/// Writes one float.
static inline void decode_f32(const BlockF32& block, float* out) {
  out[0] = block.value;
}

}  // namespace headrace
