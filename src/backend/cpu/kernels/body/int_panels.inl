// Packed integer weights times rows of quantised activations: a run of panels, unpacked a few
// blocks of columns at a time into the first-level cache and multiplied from there with all rows.
// The including file has the instruction set's dot product before this one, see <isa>/dot.inl:
//   dot_steps<Codes, kSteps, kRows>(w, x, dot): adds to dot[r][v] the sum over kSteps steps of 4
//     columns of code * x, exact. w: [kSteps][kVectors] vectors of codes, x: rows 32 bytes apart.
//   zero(), kMostRows, kSignedOffset, kFlipSigned.
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

// Blocks of columns that are unpacked at once: few enough for the first-level cache. For few rows
// fewer, so that reading weights and multiplying overlap.
constexpr int64_t kChunkBlocks = 16;
constexpr int64_t kChunkBlocksOfFewRows = 2;
constexpr int64_t kFewRows = 16;

HEADRACE_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// How a format is multiplied.
template <class CodesKind, PanelScales kScalesKind, int kCodeOffset>
struct Layout {
  using Codes = CodesKind;
  static constexpr PanelScales kScales = kScalesKind;
  static constexpr int kOffset = kCodeOffset;  ///< weight 0 has this code; a power of 2, or 0
  static constexpr bool kHasMin = kScales == PanelScales::with_min || kScales == PanelScales::k_min;
  static constexpr int kParts = kScales == PanelScales::k_signed ? 2 : 1;  ///< scales of 32 columns
};

/// 32 columns of kVectors * HEADRACE_LANES outputs.
template <class F>
struct alignas(64) Block {
  vu8 codes[8][kVectors];
  vf scale[F::kParts][kVectors];
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

template <class F>
HEADRACE_INLINE void unpack_block(const uint8_t* const* panels, int64_t scales_bytes, int64_t block,
                                  Block<F>& out) {
  using Codes = typename F::Codes;
  for (int v = 0; v < kVectors; ++v) {
    const uint8_t* panel = panels[v / kParts];
    const int part = v % kParts;
    vu8 w[8];
    Codes::unpack(panel + scales_bytes + block * Codes::kBytes + part * 4 * HEADRACE_LANES, w);
    for (int s = 0; s < 8; ++s)
      out.codes[s][v] = Codes::kSigned && kFlipSigned ? w[s] ^ 0x80 : w[s];
    const BlockScales scales = load_scales<F::kScales>(panel, block);
    out.scale[0][v] = scales.scale.p[part];
    if constexpr (F::kParts == 2) out.scale[1][v] = scales.second_scale.p[part];
    if constexpr (F::kHasMin) out.min[v] = scales.min.p[part];
  }
}

HEADRACE_INLINE vf mul_add_part(vf a, vf b, vf c) {
#if HEADRACE_LANES == 16
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

constexpr int log2_of(int n) {
  return n <= 1 ? 0 : 1 + log2_of(n / 2);
}

/// dot[r][v] = sum over the columns of a block's part of (code - offset) * x. Exact: below 2^31,
/// since with two planes 32 columns * 255 * (128 * 127 + 64) = 1.4e8.
template <class F, int kPlanes, int kRows>
HEADRACE_INLINE void centered_dots(const Block<F>& w, const RowsOfTile& x, int part,
                                   vi (&dot)[kRows][kVectors]) {
  constexpr int kSteps = 8 / F::kParts;
  const int first_col = 4 * kSteps * part;
  // Sums over all columns, then over the halves.
  const int32_t* sums = x.negated_sums + (F::kParts == 2 ? part + 1 : 0) * x.height;
  const auto start = [&](int r) -> vi {
    if constexpr (F::kOffset == 0) return zero();
    return (sums[r] - vi{}) << log2_of(F::kOffset);
  };
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) dot[r][v] = kPlanes == 2 ? zero() : start(r);
  }
  dot_steps<typename F::Codes, kSteps, kRows>(&w.codes[kSteps * part], x.high + first_col, dot);
  if constexpr (kPlanes == 2) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) dot[r][v] = (dot[r][v] << 7) + start(r);
    }
    dot_steps<typename F::Codes, kSteps, kRows>(&w.codes[kSteps * part], x.low + first_col, dot);
  }
}

/// Adds the products of `num_blocks` blocks to sum: [kRows][kVectors].
template <class F, int kPlanes, int kRows>
__attribute__((noinline)) void multiply_rows(const Block<F>* blocks, int64_t num_blocks,
                                             RowsOfTile x, vf* sum) {
  for (int64_t block = 0; block < num_blocks; ++block) {
    const Block<F>& w = blocks[block];
#pragma GCC unroll 2
    for (int part = 0; part < F::kParts; ++part) {
      vi dot[kRows][kVectors];
      centered_dots<F, kPlanes, kRows>(w, x, part, dot);
      // A block's scales and minimum come after its last part.
      const bool with_min = F::kHasMin && part == F::kParts - 1;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          vf total = mul_add_part(__builtin_convertvector(dot[r][v], vf),
                                  w.scale[part][v] * x.scale[r], sum[r * kVectors + v]);
          if (with_min) total = mul_add_part(w.min[v], x.scaled_sum[r] - vf{}, total);
          sum[r * kVectors + v] = total;
        }
      }
    }
    x.high += x.height * kBlockCols;
    if constexpr (kPlanes == 2) x.low += x.height * kBlockCols;
    x.scale += x.height;
    x.scaled_sum += x.height;
    x.negated_sums += 3 * x.height;
  }
}

/// Results of a row's kVectors vectors, of which `num_lanes` lanes exist.
HEADRACE_INLINE void load_sums(const float* out, int64_t num_lanes, vf* sum) {
  if (num_lanes >= kVectors * HEADRACE_LANES) {
    std::memcpy(sum, out, kVectors * sizeof(vf));
  } else {
    for (int v = 0; v < kVectors; ++v) sum[v] = vf{};
    std::memcpy(sum, out, static_cast<size_t>(num_lanes) * sizeof(float));
  }
}
HEADRACE_INLINE void store_sums(const vf* sum, int64_t num_lanes, float* out) {
  const auto most = static_cast<int64_t>(kVectors * HEADRACE_LANES);
  if (num_lanes >= most) {
    std::memcpy(out, sum, kVectors * sizeof(vf));
  } else {
    std::memcpy(out, sum, static_cast<size_t>(num_lanes) * sizeof(float));
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
      load_sums(out + r * a.out_stride, num_lanes, row_sum);
    }
  }
  multiply_rows<F, kPlanes, kRows>(chunk.blocks, chunk.num_blocks,
                                   rows_of_tile<kPlanes>(a.x, row, chunk.first_block), sum);
  vf bias[kVectors];
  const bool with_bias = chunk.is_last && a.bias != nullptr;
  if (with_bias) load_sums(a.bias + chunk.first_output, num_lanes, bias);
  for (int r = 0; r < kRows; ++r) {
    vf* row_sum = sum + r * kVectors;
    if (with_bias) {
      for (int v = 0; v < kVectors; ++v) row_sum[v] += bias[v];
    }
    store_sums(row_sum, num_lanes, out + r * a.out_stride);
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

/// The weights that are read about `kAhead` bytes after block `block`, in memory order: this
/// panel's, or those of the panel that its vector takes next.
HEADRACE_INLINE void prefetch_ahead(const PanelRun& a, int64_t panel, int64_t block,
                                    int64_t num_blocks, int64_t num_panels) {
  constexpr int64_t kAhead = 2048;
  const int64_t bytes_a_block = a.panel_bytes / num_blocks;
  int64_t offset = block * bytes_a_block + a.scales_bytes + kAhead;
  if (offset >= a.panel_bytes) {
    offset -= a.panel_bytes;
    panel += kPanelsTogether;
    if (panel >= num_panels || offset >= a.panel_bytes) return;
  }
  const uint8_t* at = a.panels + panel * a.panel_bytes + offset;
  for (int64_t byte = 0; byte < bytes_a_block; byte += 64) __builtin_prefetch(at + byte);
}

template <int kPlanes, class F>
void int_panels(const PanelRun& a) {
  const int64_t num_blocks = a.x.cols / kBlockCols;
  const int64_t num_panels = (a.num_outputs + kPanelRows - 1) / kPanelRows;
  const int64_t chunk_blocks = a.num_rows < kFewRows ? kChunkBlocksOfFewRows : kChunkBlocks;
  Block<F> blocks[kChunkBlocks];
  for (int64_t panel = 0; panel < num_panels; panel += kPanelsTogether) {
    // Where there is no second panel, the first one's products are made twice and dropped once.
    const int64_t second = smaller(panel + kPanelsTogether - 1, num_panels - 1);
    const uint8_t* const panels[] = {a.panels + panel * a.panel_bytes,
                                     a.panels + second * a.panel_bytes};
    for (int64_t first = 0; first < num_blocks; first += chunk_blocks) {
      const int64_t count = smaller(chunk_blocks, num_blocks - first);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t p = 0; p < kPanelsTogether; ++p) {
          prefetch_ahead(a, panel + p, first + i, num_blocks, num_panels);
        }
        unpack_block(panels, a.scales_bytes, first + i, blocks[i]);
      }
      chunk_all_rows<F, kPlanes>(
          {a, blocks, first, count, panel * kPanelRows, first == 0, first + count == num_blocks});
    }
  }
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
