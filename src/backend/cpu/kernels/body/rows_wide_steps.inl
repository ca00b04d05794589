// Blocks of weights times rows of activations with wide steps, see QuantizedRows. The including
// file has the instruction set's dot products before this one, see int_panels.inl, and needs VNNI.
//
// A block is 8 steps of 4 columns, and two more for the upper bits of the wide ones: whichever
// steps these are, it takes no branch, so that rows with different ones run together at full speed.
// Nothing overflows: 32 columns * 255 * 127 + 8 columns * 255 * 127 * 128 = 3.5e7.
#pragma once

#include "backend/cpu/kernels/body/panel_block.inl"
#include "backend/cpu/kernels/body/row_tile.inl"

namespace headrace {
namespace {

/// Rows of one tile from some block on; see QuantizedRows. Blocks are `height` rows apart.
struct RowsOfTile {
  const int8_t* dense;
  const int8_t* wide;
  const uint8_t* wide_steps;
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
          x.wide + at * kWideSteps * kStepCols,
          x.wide_steps + at * kWideSteps,
          x.scale + at,
          x.scaled_sum + at,
          x.negated_sums + 3 * block_at + tile.row_in_tile,
          tile.height};
}

HEADRACE_INLINE void next_block(RowsOfTile& x) {
  x.dense += x.height * kBlockCols;
  x.wide += x.height * kWideSteps * kStepCols;
  x.wide_steps += x.height * kWideSteps;
  x.scale += x.height;
  x.scaled_sum += x.height;
  x.negated_sums += 3 * x.height;
}

/// 128 times the products of the upper bits of wide steps, those of a half (or a block), of row r
/// and vector v. codes: [8] steps.
template <class F>
struct WideSteps {
  vi columns[kWideSteps];
  int64_t steps[kWideSteps];

  __attribute__((always_inline)) WideSteps(const RowsOfTile& x, int half, int64_t r) {
#pragma GCC unroll 2
    for (int i = 0; i < kWideSteps; ++i) {
      int32_t four;
      std::memcpy(&four, x.wide + (kWideSteps * r + i) * kStepCols, sizeof(four));
      steps[i] = x.wide_steps[kWideSteps * r + i];
      if constexpr (F::kHalves == 2) {
        // Nothing of a step in the other half.
        four = steps[i] / 4 == half ? four : 0;
        steps[i] = 4 * half + steps[i] % 4;
      }
      columns[i] = broadcast(four);
    }
  }

  /// codes_of(step): the codes of a step.
  template <class CodesOf>
  __attribute__((always_inline)) vi products(const CodesOf& codes_of) const {
    vi dot = zero();
#pragma GCC unroll 2
    for (int i = 0; i < kWideSteps; ++i) {
      dot = add_products(dot, codes_of(steps[i]), columns[i]);
    }
    return dot << 7;
  }
};

/// -offset * the sum of a half's (or a block's) integers.
template <class F>
HEADRACE_INLINE vi centre(const RowsOfTile& x, int half, int64_t r) {
  // Sums over all columns come first, then those over the halves.
  const int32_t* sums = x.negated_sums + (F::kHalves == 2 ? half + 1 : 0) * x.height;
  return (sums[r] - vi{}) << log2_of(F::kOffset);
}

/// A half (or a block) of one row and one vector of outputs, of which `dot` is the product.
template <class F>
HEADRACE_INLINE vf add_product(vi dot, vf scale, const RowsOfTile& x, int half, int64_t r, vf sum) {
  float x_scale = x.scale[r];
  if constexpr (F::kCoarse) {
    // Twice the product of codes 8 u - 124.5. Below 2^31: (16 * 31 + 249) * 127 * (32 + 8 * 128).
    dot = (dot << 4) + 249 * centre<F>(x, half, r);
    x_scale *= 0.5F;
  } else if constexpr (F::kOffset != 0) {
    dot += centre<F>(x, half, r);
  }
  return add_scaled(dot, scale, x_scale, sum);
}

template <class F>
HEADRACE_INLINE vf add_block(const BlockVector<F>& w, const RowsOfTile& x, int64_t r, vf sum) {
  constexpr int kSteps = 8 / F::kHalves;
#pragma GCC unroll 2
  for (int half = 0; half < F::kHalves; ++half) {
    const WideSteps<F> wide(x, half, r);
    const int64_t at = r * kBlockCols + 4 * kSteps * half;
    vi dot = wide.products([&](int64_t step) { return w.codes[step]; });
    dot += dot_row<typename F::Codes, kSteps>(w.codes + kSteps * half, x.dense + at);
    sum = add_product<F>(dot, w.scale[half], x, half, r, sum);
  }
  if constexpr (F::kHasMin) sum = add_min(w.min, x.scaled_sum[r], sum);
  return sum;
}

/// The same for kRows rows and all vectors; sum: [kRows][kVectors].
template <class F, int kRows>
HEADRACE_INLINE void add_block_rows(const Block<F>& w, const RowsOfTile& x, vf* sum) {
  constexpr int kSteps = 8 / F::kHalves;
#pragma GCC unroll 2
  for (int half = 0; half < F::kHalves; ++half) {
    vi dot[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const WideSteps<F> wide(x, half, r);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        dot[r][v] = wide.products([&](int64_t step) { return w.codes[step][v]; });
      }
    }
    dot_rows<typename F::Codes, kSteps, kRows>(w.codes + kSteps * half, x.dense + 4 * kSteps * half,
                                               dot);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        vf total = add_product<F>(dot[r][v], w.scale[half][v], x, half, r, sum[r * kVectors + v]);
        if constexpr (F::kHasMin) total = add_min(w.min[v], x.scaled_sum[r], total);
        sum[r * kVectors + v] = total;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
