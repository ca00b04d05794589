// How weights lie in a packed panel for tile multiplication (AMX): records and scales as in
// panel_layout.h, but the codes of a block (32 columns of 16 rows) ordered so that one row of
// weights comes out of a few instructions, to become one row of a tile: 16 rows of 32 consecutive
// columns. Plain constants only: instruction-set files include this header.
//
// Little-endian bit numbers within 64-bit words; "word g" is word g of 8 in a vector of 64 bytes,
// and holds columns 4 g to 4 g + 3, of which t counts the column.
//   u4 (256 bytes): 4 vectors; vector i, word g: the code of row 4 i + s, column t at bit
//                   16 s + 4 t
//   u5 (320 bytes): 5 vectors; vector i, word g: the code of row 3 i + s (s < 3), column t at bit
//                   20 s + 5 t, its lowest bit the code's highest and its upper four the others;
//                   bit 60 + t: bit i, so counted, of row 15, column t
// The others have the columns of a row in the order 0, 2, ... 30, 1, 3, ... 31 ("evens first").
//   u6 (384 bytes): 4 vectors of low nibbles: vector i, byte 32 e + j: rows 4 i + e (low nibble)
//                   and 4 i + 2 + e (high nibble), j-th column; then 2 vectors of the upper two
//                   bits: vector i, byte 32 e + j, bits 2 u, 2 u + 1: row 8 i + 2 u + e, j-th
//                   column
//   s8 (512 bytes): row after row
//   f16 (1024 bytes): row after row
// and bf16 (1024 bytes) row after row in the natural order: the tile itself.
#pragma once

#include <cstdint>

namespace headrace {

/// Columns of a tile of weights; rows are kPanelRows.
inline constexpr int64_t kTileCols = 32;
/// Rows of activations that share tiles.
inline constexpr int64_t kTileGroupRows = 16;
/// Numbers in a tile of weights, and in a tile of activations.
inline constexpr int64_t kTileElements = 16 * kTileCols;

/// Rows that a kernel takes at a time at most, and its memory: their sums of two panels, and
/// decoded weights.
inline constexpr int64_t kTileMostRows = 512;
inline constexpr int64_t kTileScratchBytes = 112 * 1024;

}  // namespace headrace
