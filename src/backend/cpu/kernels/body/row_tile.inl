// Where a row of QuantizedRows lies.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

struct RowTile {
  int64_t first_block;  ///< of the tile, counted through all blocks of all rows before it
  int64_t height;       ///< rows of the tile
  int64_t row_in_tile;

  /// The first row's place in arrays [tile][block][h].
  __attribute__((always_inline)) int64_t block_at(int64_t block) const {
    return first_block + block * height;
  }
};

HEADRACE_INLINE RowTile tile_of(const QuantizedRows& x, int64_t row) {
  const int64_t first_row = row / kTileRows * kTileRows;
  return {first_row * (x.cols / kBlockCols), smaller(kTileRows, x.num_rows - first_row),
          row - first_row};
}

}  // namespace
}  // namespace headrace
