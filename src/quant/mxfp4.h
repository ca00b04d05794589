// MXFP4: 32 weights of 4 bits (E2M1) with one power-of-two scale (E8M0), after the OCP Microscaling
// Formats specification 1.0. Layout as decoded by PyPI's `gguf` (class MXFP4 of quants.py).
#pragma once

#include <cstdint>

namespace headrace {

/// The E2M1 numbers doubled, so that they are integers; the scale is halved for it. Code 8, which
/// is minus zero, decodes to plus zero.
static constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

struct BlockMXFP4 {
  uint8_t e;       ///< E8M0 scale: 2^(e - 127)
  uint8_t qs[16];  ///< low nibble of qs[i]: weight i; high nibble: weight i + 16
};

/// Half of the E8M0 scale, 2^(e - 128). e = 255, a NaN in the specification, counts as 2^127, as
/// the published reference has it.
static inline float mxfp4_half_scale(uint8_t e) {
  // Below 2 the result is a float32 subnormal.
  const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1u) << 23;
  return __builtin_bit_cast(float, bits);
}

/// Writes 32 floats.
static inline void decode_mxfp4(const BlockMXFP4& block, float* out) {
  const float d = mxfp4_half_scale(block.e);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kMxfp4Values[block.qs[i] & 0x0f]);
    out[i + 16] = d * static_cast<float>(kMxfp4Values[block.qs[i] >> 4]);
  }
}

}  // namespace headrace
