// Packed integer weights times rows of quantised activations. Up to a tile of rows: weights are
// unpacked into registers, block by block, as they arrive from memory. More rows: some blocks of
// columns are unpacked into the first-level cache and multiplied from there with all rows.
//
// The including file has the instruction set's dot products before this one, see <isa>/dot.inl:
//   dot_row<Codes, kSteps>(w, x): of each lane, the sum over kSteps steps of 4 columns of code * x,
//     exact. w: [kSteps] vectors of codes.
//   dot_rows<Codes, kSteps, kRows>(w, x, dot): adds the same to dot[r][v] for several rows, 32
//     bytes apart. w: [kSteps][kVectors].
//   zero(), kMostRows, kFlipSigned.
// Integer sums are exact and a block's epilogue is written once here, so that a row's result does
// not depend on how many rows run together.
#pragma once

#include "backend/cpu/kernels/body/codes.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace {
namespace {

// Machine vectors of outputs that share a load of activations: two panels with AVX-512, the halves
// of one with AVX2.
constexpr int kVectors = 2;
constexpr int64_t kPanelsTogether = kVectors * HEADRACE_LANES / kPanelRows;

// Blocks of columns that are unpacked at once: few enough for the first-level cache.
constexpr int64_t kChunkBlocks = 16;

/// How a format is multiplied.
template <class CodesKind, PanelScales kScalesKind, int kCodeOffset>
struct Layout {
  using Codes = CodesKind;
  static constexpr PanelScales kScales = kScalesKind;
  static constexpr int kOffset = kCodeOffset;  ///< weight 0 has this code; a power of 2, or 0
  static constexpr bool kHasMin = kScales == PanelScales::with_min || kScales == PanelScales::k_min;
  static constexpr int kHalves =
      kScales == PanelScales::k_signed ? 2 : 1;  ///< scales of 32 columns
};

/// 32 columns of kVectors * HEADRACE_LANES outputs.
template <class F>
struct alignas(64) Block {
  vu8 codes[8][kVectors];
  vf scale[F::kHalves][kVectors];
  vf min[F::kHasMin ? kVectors : 1];
};

/// Rows of one tile from some block on; see QuantizedRows. Blocks are `height` rows apart.
struct RowsOfTile {
  const int8_t* high;
  const int8_t* low;
  const float* scale;
  const float* scaled_sum;
  const int32_t* negated_sums;
  int64_t height;
};

template <int kPlanes>
HEADRACE_INLINE RowsOfTile rows_of_tile(const QuantizedRows& x, int64_t row, int64_t block) {
  const int64_t first = row / kTileRows * kTileRows;
  const int64_t num_blocks = x.cols / kBlockCols;
  const int64_t height = smaller(kTileRows, x.num_rows - first);
  const int64_t at = first * num_blocks + block * height + (row - first);
  const int64_t sums_at = 3 * (first * num_blocks + block * height) + (row - first);
  return {x.high + at * kBlockCols,
          kPlanes == 2 ? x.low + at * kBlockCols : nullptr,
          x.scale + at,
          x.scaled_sum + at,
          x.negated_sums + sums_at,
          height};
}

/// A vector of outputs' codes and scales for 32 columns.
template <class F>
struct BlockVector {
  vu8 codes[8];
  vf scale[F::kHalves];
  vf min;  ///< if F::kHasMin
};

/// Vector `part` of a panel.
template <class F>
HEADRACE_INLINE BlockVector<F> unpack_vector(const uint8_t* panel, int64_t block, int part) {
  using Codes = typename F::Codes;
  const BlockPlace place = place_of_block<Codes, F::kScales>(panel, block);
  BlockVector<F> out;
  Codes::unpack(place.codes + part * 4 * HEADRACE_LANES, out.codes);
  if constexpr (Codes::kSigned && kFlipSigned) {
    for (int s = 0; s < 8; ++s) out.codes[s] ^= 0x80;
  }
  const BlockScales scales = load_scales<F::kScales>(place);
  out.scale[0] = scales.scale.p[part];
  if constexpr (F::kHalves == 2) out.scale[1] = scales.second_scale.p[part];
  if constexpr (F::kHasMin) out.min = scales.min.p[part];
  return out;
}

template <class F>
HEADRACE_INLINE void unpack_block(const uint8_t* const* panels, int64_t block, Block<F>& out) {
  for (int v = 0; v < kVectors; ++v) {
    const BlockVector<F> vector = unpack_vector<F>(panels[v / kParts], block, v % kParts);
    for (int s = 0; s < 8; ++s) out.codes[s][v] = vector.codes[s];
    for (int half = 0; half < F::kHalves; ++half) out.scale[half][v] = vector.scale[half];
    if constexpr (F::kHasMin) out.min[v] = vector.min;
  }
}

constexpr int log2_of(int n) {
  return n <= 1 ? 0 : 1 + log2_of(n / 2);
}

/// -offset * the sum of a half's (or a block's) activations of row r.
template <class F>
HEADRACE_INLINE vi centre(const RowsOfTile& x, int half, int64_t r) {
  if constexpr (F::kOffset == 0) return zero();
  // Sums over all columns come first, then those over the halves.
  const int32_t* sums = x.negated_sums + (F::kHalves == 2 ? half + 1 : 0) * x.height;
  return (sums[r] - vi{}) << log2_of(F::kOffset);
}

/// The end of a half: sum + (scales of weights and activations) * dot.
template <class F>
HEADRACE_INLINE vf add_scaled(vi dot, vf scale, const RowsOfTile& x, int64_t r, vf sum) {
  return mul_add_vector(__builtin_convertvector(dot, vf), scale * x.scale[r], sum);
}

/// The end of a block: sum + minimum * sum of the activations.
template <class F>
HEADRACE_INLINE vf add_min(vf min, const RowsOfTile& x, int64_t r, vf sum) {
  return mul_add_vector(min, x.scaled_sum[r] - vf{}, sum);
}

/// A block of one row and one vector of outputs. The centred dot product is exact: below 2^31,
/// since with two planes 32 columns * 255 * (128 * 127 + 64) = 1.4e8.
template <class F, int kPlanes>
HEADRACE_INLINE vf add_block(const BlockVector<F>& w, const RowsOfTile& x, int64_t r, vf sum) {
  constexpr int kSteps = 8 / F::kHalves;
  using Codes = typename F::Codes;
  for (int half = 0; half < F::kHalves; ++half) {
    const vu8* codes = w.codes + kSteps * half;
    const int64_t at = r * kBlockCols + 4 * kSteps * half;
    vi dot = dot_row<Codes, kSteps>(codes, x.high + at);
    if constexpr (kPlanes == 2) dot = (dot << 7) + dot_row<Codes, kSteps>(codes, x.low + at);
    if constexpr (F::kOffset != 0) dot += centre<F>(x, half, r);
    sum = add_scaled<F>(dot, w.scale[half], x, r, sum);
  }
  if constexpr (F::kHasMin) sum = add_min<F>(w.min, x, r, sum);
  return sum;
}

template <int kPlanes>
HEADRACE_INLINE void next_block(RowsOfTile& x) {
  x.high += x.height * kBlockCols;
  if constexpr (kPlanes == 2) x.low += x.height * kBlockCols;
  x.scale += x.height;
  x.scaled_sum += x.height;
  x.negated_sums += 3 * x.height;
}

/// The rows of one tile times all panels, kPanels at a time. kRows: how many rows there are, or 0
/// if that is not known beforehand.
template <int kPlanes, class F, int kPanels, int kRows>
__attribute__((noinline)) void few_rows(const PanelRun& a) {
  // What is used soon goes to the first level, what comes later to the second: memory then gives
  // its best rate.
  constexpr int64_t kAheadBytes = 1024;
  constexpr int64_t kFurtherBytes = 2048;
  constexpr int kAll = kPanels * kParts;
  const int64_t num_rows = kRows > 0 ? kRows : a.num_rows;
  const int64_t num_blocks = a.x.cols / kBlockCols;
  const int64_t num_panels = (a.num_outputs + kPanelRows - 1) / kPanelRows;
  const int64_t bytes_a_block = a.panel_bytes / num_blocks;
  for (int64_t panel = 0; panel < num_panels; panel += kPanels) {
    const uint8_t* panels[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      // Where there is no second panel, the last one's products are made twice and dropped once.
      panels[p] = a.panels + smaller(panel + p, num_panels - 1) * a.panel_bytes;
    }
    vf sums[kRows > 0 ? kRows : kTileRows][kAll];
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int v = 0; v < kAll; ++v) sums[r][v] = vf{};
    }
    const uint8_t* ahead[kPanels];
    for (int p = 0; p < kPanels; ++p) ahead[p] = panels[p] + kAheadBytes - bytes_a_block;
    RowsOfTile x = rows_of_tile<kPlanes>(a.x, a.first_row, 0);
    for (int64_t block = 0; block < num_blocks; ++block) {
#pragma GCC unroll 4
      for (int v = 0; v < kAll; ++v) {
        const uint8_t* data = panels[v / kParts];
        if (v % kParts == 0) {
          const uint8_t* until = data + block * bytes_a_block + kAheadBytes;
          const uint8_t*& asked = ahead[v / kParts];
          for (; asked < until; asked += 64) {
            __builtin_prefetch(asked);
            __builtin_prefetch(asked + kFurtherBytes, 0, 2);
          }
        }
        const BlockVector<F> w = unpack_vector<F>(data, block, v % kParts);
        for (int64_t r = 0; r < num_rows; ++r) {
          sums[r][v] = add_block<F, kPlanes>(w, x, r, sums[r][v]);
        }
      }
      next_block<kPlanes>(x);
    }
    const int64_t first_output = panel * kPanelRows;
    const int64_t num_lanes = a.num_outputs - first_output;
    for (int64_t r = 0; r < num_rows; ++r) {
      vf* row = sums[r];
      if (a.bias != nullptr) {
        vf bias[kAll];
        load_lanes(a.bias + first_output, num_lanes, kAll, bias);
        for (int v = 0; v < kAll; ++v) row[v] += bias[v];
      }
      store_lanes(row, num_lanes, kAll, a.out + (a.first_row + r) * a.out_stride + first_output);
    }
  }
}

/// dot[r][v]: the centred dot products of a half (or a block) for several rows.
template <class F, int kPlanes, int kRows>
HEADRACE_INLINE void centred_dots(const Block<F>& w, const RowsOfTile& x, int half,
                                  vi (&dot)[kRows][kVectors]) {
  constexpr int kSteps = 8 / F::kHalves;
  const int first_col = 4 * kSteps * half;
  const auto* codes = &w.codes[kSteps * half];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) dot[r][v] = kPlanes == 2 ? zero() : centre<F>(x, half, r);
  }
  dot_rows<typename F::Codes, kSteps, kRows>(codes, x.high + first_col, dot);
  if constexpr (kPlanes == 2) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) dot[r][v] = (dot[r][v] << 7) + centre<F>(x, half, r);
    }
    dot_rows<typename F::Codes, kSteps, kRows>(codes, x.low + first_col, dot);
  }
}

/// Weights to ask for while others are multiplied: `bytes` for each block, of kPanelsTogether
/// panels.
struct Prefetch {
  const uint8_t* data = nullptr;  ///< null: none
  int64_t bytes = 0;
  int64_t panel_bytes = 0;

  __attribute__((always_inline)) void next_block() {
    for (int64_t p = 0; p < kPanelsTogether; ++p) {
      const uint8_t* at = data + p * panel_bytes;
      for (int64_t byte = 0; byte < bytes; byte += 64) __builtin_prefetch(at + byte, 0, 2);
    }
    data += bytes;
  }
};

/// Adds the products of `num_blocks` blocks to sum: [kRows][kVectors].
template <class F, int kPlanes, int kRows>
__attribute__((noinline)) void multiply_rows(const Block<F>* blocks, int64_t num_blocks,
                                             RowsOfTile x, vf* sum, Prefetch prefetch) {
  for (int64_t block = 0; block < num_blocks; ++block) {
    const Block<F>& w = blocks[block];
    if (prefetch.data != nullptr) prefetch.next_block();
#pragma GCC unroll 2
    for (int half = 0; half < F::kHalves; ++half) {
      vi dot[kRows][kVectors];
      centred_dots<F, kPlanes, kRows>(w, x, half, dot);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          vf total = add_scaled<F>(dot[r][v], w.scale[half][v], x, r, sum[r * kVectors + v]);
          if constexpr (F::kHasMin) total = add_min<F>(w.min[v], x, r, total);
          sum[r * kVectors + v] = total;
        }
      }
    }
    next_block<kPlanes>(x);
  }
}

/// One chunk of columns of a group of panels.
template <class F>
struct Chunk {
  const PanelRun& run;
  const Block<F>* blocks;
  int64_t first_block;
  int64_t num_blocks;
  int64_t first_output;
  bool is_first;
  bool is_last;
  Prefetch prefetch;
};

template <class F, int kPlanes, int kRows>
HEADRACE_INLINE void chunk_rows(const Chunk<F>& chunk, int64_t row) {
  const PanelRun& a = chunk.run;
  const int64_t num_lanes = a.num_outputs - chunk.first_output;
  float* out = a.out + row * a.out_stride + chunk.first_output;
  vf sum[kRows * kVectors];
  for (int r = 0; r < kRows; ++r) {
    vf* row_sum = sum + r * kVectors;
    if (chunk.is_first) {
      for (int v = 0; v < kVectors; ++v) row_sum[v] = vf{};
    } else {
      load_lanes(out + r * a.out_stride, num_lanes, kVectors, row_sum);
    }
  }
  multiply_rows<F, kPlanes, kRows>(chunk.blocks, chunk.num_blocks,
                                   rows_of_tile<kPlanes>(a.x, row, chunk.first_block), sum,
                                   row == a.first_row ? chunk.prefetch : Prefetch{});
  vf bias[kVectors];
  const bool with_bias = chunk.is_last && a.bias != nullptr;
  if (with_bias) load_lanes(a.bias + chunk.first_output, num_lanes, kVectors, bias);
  for (int r = 0; r < kRows; ++r) {
    vf* row_sum = sum + r * kVectors;
    if (with_bias) {
      for (int v = 0; v < kVectors; ++v) row_sum[v] += bias[v];
    }
    store_lanes(row_sum, num_lanes, kVectors, out + r * a.out_stride);
  }
}

template <class F, int kPlanes>
HEADRACE_INLINE void chunk_all_rows(const Chunk<F>& chunk) {
  const int64_t end = chunk.run.first_row + chunk.run.num_rows;
  for (int64_t row = chunk.run.first_row; row < end;) {
    // Rows that run together are of one tile.
    const int64_t left = smaller(end, (row / kTileRows + 1) * kTileRows) - row;
    if (kMostRows == 8 && left >= 8) {
      chunk_rows<F, kPlanes, kMostRows>(chunk, row);
      row += kMostRows;
    } else if (left >= 4) {
      chunk_rows<F, kPlanes, 4>(chunk, row);
      row += 4;
    } else if (left >= 2) {
      chunk_rows<F, kPlanes, 2>(chunk, row);
      row += 2;
    } else {
      chunk_rows<F, kPlanes, 1>(chunk, row);
      row += 1;
    }
  }
}

template <int kPlanes, class F>
__attribute__((noinline)) void many_rows(const PanelRun& a) {
  const int64_t num_blocks = a.x.cols / kBlockCols;
  const int64_t num_panels = (a.num_outputs + kPanelRows - 1) / kPanelRows;
  const int64_t bytes_a_block = a.panel_bytes / num_blocks;
  Block<F> blocks[kChunkBlocks];
  for (int64_t panel = 0; panel < num_panels; panel += kPanelsTogether) {
    const uint8_t* data = a.panels + panel * a.panel_bytes;
    // Where there is no second panel, the first one's products are made twice and dropped once.
    const bool has_second = kPanelsTogether == 2 && panel + 1 < num_panels;
    const uint8_t* const panels[] = {data, data + (has_second ? a.panel_bytes : 0)};
    const bool has_next = panel + 2 * kPanelsTogether <= num_panels;
    const uint8_t* next = data + kPanelsTogether * a.panel_bytes;
    for (int64_t first = 0; first < num_blocks; first += kChunkBlocks) {
      const int64_t count = smaller(kChunkBlocks, num_blocks - first);
      for (int64_t i = 0; i < count; ++i) {
        unpack_block(panels, first + i, blocks[i]);
      }
      // Panels are taken as evenly spread over their blocks.
      Prefetch prefetch;
      if (has_next) prefetch = {next + first * bytes_a_block, bytes_a_block, a.panel_bytes};
      chunk_all_rows<F, kPlanes>({a, blocks, first, count, panel * kPanelRows, first == 0,
                                  first + count == num_blocks, prefetch});
    }
  }
}

template <int kPlanes, class F>
void int_panels(const PanelRun& a) {
  if (a.num_rows == 1) return few_rows<kPlanes, F, 2, 1>(a);
  if (a.num_rows <= kTileRows) return few_rows<kPlanes, F, 1, 0>(a);
  many_rows<kPlanes, F>(a);
}

using Q4_0 = Layout<CodesU4, PanelScales::one, 8>;
using Q4_1 = Layout<CodesU4, PanelScales::with_min, 0>;
using Q5_0 = Layout<CodesU5, PanelScales::one, 16>;
using Q5_1 = Layout<CodesU5, PanelScales::with_min, 0>;
using Q8_0 = Layout<CodesS8, PanelScales::one, kFlipSigned ? 128 : 0>;
using Q4_K = Layout<CodesU4, PanelScales::k_min, 0>;
using Q5_K = Layout<CodesU5, PanelScales::k_min, 0>;
using Q6_K = Layout<CodesU6, PanelScales::k_signed, 32>;

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

const PanelFunction int8_panels[kNumPanelFormats] = {
    int_panels<1, Q4_0>, int_panels<1, Q4_1>, int_panels<1, Q5_0>, int_panels<1, Q5_1>,
    int_panels<1, Q8_0>, int_panels<1, Q4_K>, int_panels<1, Q5_K>, int_panels<1, Q6_K>,
};
const PanelFunction int15_panels[kNumPanelFormats] = {
    int_panels<2, Q4_0>, int_panels<2, Q4_1>, int_panels<2, Q5_0>, int_panels<2, Q5_1>,
    int_panels<2, Q8_0>, int_panels<2, Q4_K>, int_panels<2, Q5_K>, int_panels<2, Q6_K>,
};

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
