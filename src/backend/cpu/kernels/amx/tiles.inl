// The tile instructions, as functions of constant tile numbers, and the shapes that a kernel sets
// up.
//
// Inline assembly in place of the compiler's intrinsics: those of GCC 12 do not tell the compiler
// that a tile is loaded from memory which it has just been told to write.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// What a whole tile occupies in memory where its rows follow each other: an operand that tells the
/// compiler what is read or written, in place of all memory. Tiles whose rows are shorter say more.
struct TileBytes {
  char bytes[1024];
};

template <int kTile>
HEADRACE_INLINE void tile_load(const void* rows, int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride_bytes), "i"(kTile),
               "m"(*static_cast<const TileBytes*>(rows)));
}

/// The same for what will not be loaded again soon: it does not push other tiles out of the
/// first-level cache.
template <int kTile>
HEADRACE_INLINE void tile_load_passing(const void* rows, int64_t stride_bytes) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride_bytes), "i"(kTile),
               "m"(*static_cast<const TileBytes*>(rows)));
}

template <int kTile>
HEADRACE_INLINE void tile_store(void* rows, int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c3, (%1,%2,1)"
               : "+m"(*static_cast<TileBytes*>(rows))
               : "r"(rows), "r"(stride_bytes), "i"(kTile));
}

template <int kTile>
HEADRACE_INLINE void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

/// sum[m][n] += the sum over 16 pairs p of a[m][2p] * b[p][2n] + a[m][2p+1] * b[p][2n+1], bf16
/// times bf16 in float32. As measured: two chains of fused multiply-adds from 0, one over the even
/// and one over the odd columns, then sum + (even + odd); numbers below the normal range are taken
/// as 0.
template <int kSum, int kA, int kB>
HEADRACE_INLINE void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

/// Memory of the LDTILECFG instruction (Intel SDM volume 1, chapter 18), palette 1.
struct TileConfig {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

/// Gives tiles their shapes, until release_tiles. Tiles 0 to 3 are sums, 4 and 5 weights, 6 and 7
/// activations: 16 rows of 64 bytes, but sums and activations have `columns` 32-bit columns. The
/// two calls together cost about 200 cycles.
HEADRACE_INLINE void configure_tiles(int columns) {
  TileConfig config = {};
  config.palette = 1;
  for (int i = 0; i < 8; ++i) {
    config.rows[i] = 16;
    config.row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? 64 : 4 * columns);
  }
  asm volatile("ldtilecfg %0" ::"m"(config));
}

HEADRACE_INLINE void release_tiles() {
  asm volatile("tilerelease" ::);
}

}  // namespace
}  // namespace headrace
