// Blocks of weights times rows of activations in two planes, see QuantizedRows. The including file
// has the instruction set's dot products before this one, see int_panels.inl.
#pragma once

#include "backend/cpu/kernels/body/panel_block.inl"
#include "backend/cpu/kernels/body/row_tile.inl"

namespace headrace {
namespace {

// What a step of a low plane is to one of a high plane.
constexpr float kLowStep = 0x1p-7F;

/// Rows of one tile from some block on; see QuantizedRows. Blocks are `height` rows apart.
struct RowsOfTile {
  const int8_t* high;
  const int8_t* low;
  const uint8_t* has_low;
  const int16_t* whole;
  const float* scale;
  const float* scaled_sum;
  const int32_t* negated_sums;
  int64_t height;
};

HEADRACE_INLINE RowsOfTile rows_of_tile(const QuantizedRows& x, int64_t row, int64_t block) {
  const RowTile tile = tile_of(x, row);
  const int64_t block_at = tile.block_at(block);
  const int64_t at = block_at + tile.row_in_tile;
  return {x.high + at * kBlockCols,
          x.low + at * kBlockCols,
          x.has_low + at,
          x.whole + (kWidensSigned ? at * kBlockCols : 0),
          x.scale + at,
          x.scaled_sum + at,
          x.negated_sums + 3 * block_at + tile.row_in_tile,
          tile.height};
}

HEADRACE_INLINE void next_block(RowsOfTile& x) {
  x.high += x.height * kBlockCols;
  x.low += x.height * kBlockCols;
  x.has_low += x.height;
  if constexpr (kWidensSigned) x.whole += x.height * kBlockCols;
  x.scale += x.height;
  x.scaled_sum += x.height;
  x.negated_sums += 3 * x.height;
}

template <class F>
HEADRACE_INLINE const int32_t* negated_sums(const RowsOfTile& x, int half) {
  // Sums over all columns come first, then those over the halves.
  return x.negated_sums + (F::kHalves == 2 ? half + 1 : 0) * x.height;
}

/// -offset * the sum of a half's (or a block's) high plane, of row r that has no low plane.
template <class F>
HEADRACE_INLINE vi centre_of_high(const RowsOfTile& x, int half, int64_t r) {
  // The sum of the integers is 128 times that of the high plane.
  static_assert(F::kOffset <= 128);
  return (negated_sums<F>(x, half)[r] - vi{}) >> (7 - log2_of(F::kOffset));
}

/// -offset * the sum of a half's (or a block's) integers.
template <class F>
HEADRACE_INLINE vi centre_of_both(const RowsOfTile& x, int half, int64_t r) {
  return (negated_sums<F>(x, half)[r] - vi{}) << log2_of(F::kOffset);
}

/// Twice the product of codes 8 u - 124.5, from that of u and -1 times the sum of the activations.
/// Below 2^31: 32 columns * (16 * 31 + 249) * (128 * 127 + 64) = 3.9e8.
HEADRACE_INLINE vi centred_coarse(vi dot, vi negated_sum) {
  return (dot << 4) + 249 * negated_sum;
}

/// A block of one row and one vector of outputs. The centred dot product is exact: below 2^22 of
/// the high plane, below 2^31 of both, since 32 columns * 255 * (128 * 127 + 64) = 1.4e8. Where low
/// is all zeros, both ways give the same bits: 128 times the one number times a 128th of the other.
template <class F>
HEADRACE_INLINE vf add_block(const BlockVector<F>& w, const RowsOfTile& x, int64_t r, vf sum) {
  constexpr int kSteps = 8 / F::kHalves;
  using Codes = typename F::Codes;
#pragma GCC unroll 2
  for (int half = 0; half < F::kHalves; ++half) {
    const vu8* codes = w.codes + kSteps * half;
    const int64_t at = r * kBlockCols + 4 * kSteps * half;
    vi dot = dot_row<Codes, kSteps>(codes, x.high + at);
    float x_scale = x.scale[r];
    if (x.has_low[r] != 0) {
      dot = (dot << 7) + dot_row<Codes, kSteps>(codes, x.low + at);
      if constexpr (F::kOffset != 0) dot += centre_of_both<F>(x, half, r);
      if constexpr (F::kCoarse) dot = centred_coarse(dot, negated_sums<F>(x, half)[r] - vi{});
      x_scale *= kLowStep;
    } else if constexpr (F::kCoarse) {
      dot = centred_coarse(dot, (negated_sums<F>(x, half)[r] - vi{}) >> 7);
    } else if constexpr (F::kOffset != 0) {
      dot += centre_of_high<F>(x, half, r);
    }
    if constexpr (F::kCoarse) x_scale *= 0.5F;
    sum = add_scaled(dot, w.scale[half], x_scale, sum);
  }
  if constexpr (F::kHasMin) sum = add_min(w.min, x.scaled_sum[r], sum);
  return sum;
}

/// Whether one of kRows rows has a low plane.
template <int kRows>
HEADRACE_INLINE bool any_has_low(const RowsOfTile& x) {
  uint64_t flags = 0;
  std::memcpy(&flags, x.has_low, kRows);
  return flags != 0;
}

/// Adds the products of a half (or a block) to sum: [kRows][kVectors]. kHasLow: see add_block.
template <class F, int kRows, bool kHasLow>
HEADRACE_INLINE void add_half(const Block<F>& w, const RowsOfTile& x, int half, vf* sum) {
  constexpr int kSteps = 8 / F::kHalves;
  const int first_col = 4 * kSteps * half;
  vi dot[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) dot[r][v] = zero();
  }
  const vu8(*codes)[kVectors] = &w.codes[kSteps * half];
  dot_rows<typename F::Codes, kSteps, kRows>(codes, x.high + first_col, dot);
  if constexpr (kHasLow) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dot[r][v] <<= 7;
    }
    // Codes are loaded anew: keeping them would take the sums' registers.
    asm volatile("" : "+r"(codes));
    dot_rows<typename F::Codes, kSteps, kRows>(codes, x.low + first_col, dot);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const float x_scale = kHasLow ? x.scale[r] * kLowStep : x.scale[r];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (F::kOffset != 0) {
        dot[r][v] += kHasLow ? centre_of_both<F>(x, half, r) : centre_of_high<F>(x, half, r);
      }
      vf total = add_scaled(dot[r][v], w.scale[half][v], x_scale, sum[r * kVectors + v]);
      if constexpr (F::kHasMin) total = add_min(w.min[v], x.scaled_sum[r], total);
      sum[r * kVectors + v] = total;
    }
  }
}

/// A block of codes in 16 bits, with both planes at once: the same bits as add_block.
template <class F, int kRows>
HEADRACE_INLINE void add_widened_block(const Block<F>& w, const RowsOfTile& x, vf* sum) {
  static_assert(F::kHalves == 1 && F::kOffset == 0 && !F::kHasMin && !F::kCoarse);
  vi dot[kRows][kVectors] = {};
  dot_whole_rows(w.codes, x.whole, dot);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      vf& total = sum[r * kVectors + v];
      total = add_scaled(dot[r][v], w.scale[0][v], x.scale[r] * kLowStep, total);
    }
  }
}

/// The same for a whole block.
template <class F, int kRows>
HEADRACE_INLINE void add_block_rows(const Block<F>& w, const RowsOfTile& x, vf* sum) {
  if constexpr (kIsWidened<F>) {
    add_widened_block<F, kRows>(w, x, sum);
  } else {
    const bool has_low = any_has_low<kRows>(x);
#pragma GCC unroll 2
    for (int half = 0; half < F::kHalves; ++half) {
      if (has_low) {
        add_half<F, kRows, true>(w, x, half, sum);
      } else {
        add_half<F, kRows, false>(w, x, half, sum);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
