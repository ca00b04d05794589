// Rows of activations to tiles of bf16, see TileRows.
#include "backend/cpu/kernels/amx/transpose.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace {
namespace {

/// 32 columns in their order, to nearest even; numbers below the normal range become 0.
HEADRACE_INLINE __m512i round_columns(const float* x) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void tile_rows(const float* values, int64_t stride, int64_t group, const TileRows& x) {
  const int64_t num_blocks = x.cols / kTileCols;
  if (x.num_rows == 1) {
    for (int64_t k = 0; k < x.cols; k += kTileCols) {
      const __m512i row = round_columns(values + k);
      std::memcpy(x.tiles + k, &row, sizeof(row));
    }
    return;
  }
  const int64_t first_row = group * kTileGroupRows;
  const int64_t left = x.num_rows - first_row;
  const int64_t num_rows = left < kTileGroupRows ? left : kTileGroupRows;
  alignas(64) float pairs[16 * 16] = {};  // rows that do not exist stay zeros
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float* from = values + block * kTileCols;
    for (int64_t r = 0; r < num_rows; ++r) {
      const __m512i row = round_columns(from + r * stride);
      std::memcpy(pairs + 16 * r, &row, sizeof(row));
    }
    uint16_t* tile = x.tiles + (group * num_blocks + block) * kTileElements;
#pragma GCC unroll 4
    for (int first = 0; first < 16; first += 4) {
      const FourColumns columns = transpose_four(pairs + first);
      std::memcpy(tile + first * kTileCols, &columns, sizeof(columns));
    }
  }
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
