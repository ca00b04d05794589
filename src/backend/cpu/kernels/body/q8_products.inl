// The two products of attention over q8 and q12 pages, which each instruction set computes in its
// own way.
#pragma once

#include "backend/cpu/kernels/attention_args.h"
#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

constexpr int64_t kQ8Panels = kQ8BlockKeys / 16;
/// Rows that go through a block together: their intermediate results stay in the first cache.
constexpr int64_t kQ8GroupRows = 16;

/// A block's panels, and what belongs to its keys.
struct Q8Block {
  const std::byte* panels[kQ8Panels];  ///< null where no row sees a key
  float* key_scales;                   ///< [chunks][64]
  float* value_logs;                   ///< [64]: base-2 logarithms of the values' scales
  float* value_inverses;               ///< [64]: 1 / scale
};

/// out[r][c][16 * i + lane] = sum over the features d of chunk c of codes[r][d] * code of key, for
/// the panels i in [first, last).
/// Depth: at most 2047 * 4095 for a feature, 256 features in a chunk: less than 2^31.
struct ScoreProduct {
  const std::byte* panels[kQ8Panels];  ///< each [dim / 2][16][2], int8 or int16
  int64_t key_bytes;
  int64_t first;
  int64_t last;
  const int16_t* codes;  ///< [num_rows][dim]
  int64_t num_rows;
  int64_t dim;
  int64_t chunks;
  int32_t* out;  ///< [num_rows][chunks][64]
};

/// out[r][d] = sum over the tokens t of the panels [first, last) of weights[r][t] * value[t][d].
/// Depth: at most 32001 * 127 for a token, 64 tokens: 2^28.
struct ValueProduct {
  const int8_t* panels[kQ8Panels];  ///< each [8][dim][2]: token, within two, last
  int64_t first;
  int64_t last;
  const int16_t* weights;  ///< [num_rows][64]
  int64_t num_rows;
  int64_t dim;
  int32_t* out;  ///< [num_rows][dim]
};

HEADRACE_INLINE I16x load_int(const int32_t* x) {
  I16x r;
  HEADRACE_EACH std::memcpy(&r.p[i], x + i * HEADRACE_LANES, sizeof(vi));
  return r;
}

HEADRACE_INLINE void store_int(int32_t* out, I16x a) {
  HEADRACE_EACH std::memcpy(out + i * HEADRACE_LANES, &a.p[i], sizeof(vi));
}

HEADRACE_INLINE F16x to_floats(I16x x) {
  F16x r;
  HEADRACE_EACH r.p[i] = __builtin_convertvector(x.p[i], vf);
  return r;
}

/// Rounds to the nearest integers, for magnitudes below 2^22.
HEADRACE_INLINE I16x round_to_integers(F16x x) {
  I16x r;
  HEADRACE_EACH r.p[i] = (vi)(x.p[i] + 12582912.0F) - 0x4b400000;
  return r;
}

#if HEADRACE_LANES == 16
#define HEADRACE_SWAPPED(x, h)                                                                 \
  __builtin_shufflevector(x, x, 0 ^ h, 1 ^ h, 2 ^ h, 3 ^ h, 4 ^ h, 5 ^ h, 6 ^ h, 7 ^ h, 8 ^ h, \
                          9 ^ h, 10 ^ h, 11 ^ h, 12 ^ h, 13 ^ h, 14 ^ h, 15 ^ h)
#elif HEADRACE_LANES == 8
#define HEADRACE_SWAPPED(x, h) \
  __builtin_shufflevector(x, x, 0 ^ h, 1 ^ h, 2 ^ h, 3 ^ h, 4 ^ h, 5 ^ h, 6 ^ h, 7 ^ h)
#else
#define HEADRACE_SWAPPED(x, h) __builtin_shufflevector(x, x, 0 ^ h, 1 ^ h, 2 ^ h, 3 ^ h)
#endif

/// Lanes i and i ^ h change places.
template <int h>
HEADRACE_INLINE F16x swapped(F16x x) {
  F16x r;
  if constexpr (h >= HEADRACE_LANES) {
    HEADRACE_EACH r.p[i] = x.p[i ^ (h / HEADRACE_LANES)];
  } else {
    HEADRACE_EACH r.p[i] = HEADRACE_SWAPPED(x.p[i], h);
  }
  return r;
}
#undef HEADRACE_SWAPPED

/// The largest lane, in every lane.
HEADRACE_INLINE F16x splat_max(F16x x) {
  x = max(x, swapped<8>(x));
  x = max(x, swapped<4>(x));
  x = max(x, swapped<2>(x));
  return max(x, swapped<1>(x));
}

/// Asks for memory that will be read soon, into the second cache.
HEADRACE_INLINE void prefetch(const void* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(static_cast<const std::byte*>(p) + i, 0, 2);
  }
}

}  // namespace
}  // namespace headrace
