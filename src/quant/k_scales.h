// The packing of 8 scales and 8 mins of 6 bits into 12 bytes, which Q4_K and Q5_K share.
#pragma once

#include <cstdint>

namespace headrace {

struct KScaleMin {
  uint8_t scale;  ///< 0..63
  uint8_t min;    ///< 0..63
};

/// Scale and min of group 0..7. Groups 0..3: the low 6 bits of bytes g (scale) and 4 + g (min).
/// Groups 4..7: the low 4 bits are the nibbles of byte 4 + g (scale low, min high), the high 2 bits
/// are the top of bytes g - 4 (scale) and g (min). Source: PyPI's `gguf`, get_scale_min of
/// quants.py.
static inline KScaleMin k_scale_min(const uint8_t* scales, int group) {
  if (group < 4) {
    return {static_cast<uint8_t>(scales[group] & 0x3f),
            static_cast<uint8_t>(scales[group + 4] & 0x3f)};
  }
  const uint8_t low = scales[group + 4];
  return {static_cast<uint8_t>((low & 0x0f) | (scales[group - 4] >> 6 << 4)),
          static_cast<uint8_t>((low >> 4) | (scales[group] >> 6 << 4))};
}

}  // namespace headrace
