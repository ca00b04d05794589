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
//   kWidensSigned; where it is true, widen(codes, even, odd) and dot_whole_rows(w, x, dot) for
//     signed codes of many rows, which dot_rows does without then.
// and the form of activations: rows_two_planes.inl or rows_wide_steps.inl, each with RowsOfTile,
// rows_of_tile, next_block, add_block and add_block_rows.
// Integer sums are exact and a block's epilogue is written once here, so that a row's result does
// not depend on how many rows run together.
#pragma once

#include "backend/cpu/kernels/body/outputs.inl"
#include "backend/cpu/kernels/body/panel_block.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace {
namespace {

// Most blocks of columns that are unpacked at once: few enough for the first-level cache.
constexpr int64_t kMostChunkBlocks = HEADRACE_LANES == 16 ? 24 : 16;

// How far ahead of unpacking packed weights are asked for.
constexpr int64_t kUnpackAheadBytes = 1024;

/// Outputs from `first` on, rows from `row` on.
HEADRACE_INLINE Outputs outputs_of(const PanelRun& a, int64_t row, int64_t first) {
  return {a.out + row * a.out_stride + first, a.out_stride, a.num_outputs - first,
          a.bias != nullptr ? a.bias + first : nullptr};
}

HEADRACE_INLINE const uint8_t* low_panel(const PanelRun& a, int64_t panel) {
  if (a.low_panels == nullptr) return nullptr;
  return a.low_panels + panel * (a.x.cols / kBlockCols * kLowPlaneBytes);
}

/// Vector `part` of a panel. low: its lower bits, where it has them apart.
template <class F>
HEADRACE_INLINE BlockVector<F> unpack_vector(const uint8_t* panel, const uint8_t* low,
                                             int64_t block, int part) {
  using Codes = typename F::Codes;
  const BlockPlace place = place_of_block<Codes, F::kScales>(panel, block);
  BlockVector<F> out;
  const int offset = part * 4 * HEADRACE_LANES;
  if constexpr (requires { Codes::kHasLowPlane; }) {
    Codes::unpack(place.codes + offset, low + block * kLowPlaneBytes + offset, out.codes);
  } else {
    Codes::unpack(place.codes + offset, out.codes);
  }
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
HEADRACE_INLINE void unpack_block(const uint8_t* const* panels, const uint8_t* const* lows,
                                  int64_t block, Block<F>& out) {
  for (int v = 0; v < kVectors; ++v) {
    const BlockVector<F> vector =
        unpack_vector<F>(panels[v / kParts], lows[v / kParts], block, v % kParts);
    for (int s = 0; s < 8; ++s) {
      if constexpr (kIsWidened<F>) {
        widen(vector.codes[s], out.codes[2 * s][v], out.codes[2 * s + 1][v]);
      } else {
        out.codes[s][v] = vector.codes[s];
      }
    }
    for (int half = 0; half < F::kHalves; ++half) out.scale[half][v] = vector.scale[half];
    if constexpr (F::kHasMin) out.min[v] = vector.min;
  }
}

/// The rows of one tile times all panels, kPanels at a time. kRows: how many rows there are, or 0
/// if that is not known beforehand.
template <class F, int kPanels, int kRows>
__attribute__((noinline)) void few_rows(const PanelRun& a) {
  // What is used soon goes to the first level, what comes later to the second: memory then gives
  // its best rate.
  constexpr int64_t kAheadBytes = 1024;
  constexpr int64_t kFurtherBytes = 2048;
  constexpr int kAll = kPanels * kParts;
  const int64_t num_rows = kRows > 0 ? kRows : a.num_rows;
  const int64_t num_blocks = a.x.cols / kBlockCols;
  const int64_t num_panels = panels_of(a.num_outputs);
  const int64_t bytes_a_block = a.panel_bytes / num_blocks;
  for (int64_t panel = 0; panel < num_panels; panel += kPanels) {
    const uint8_t* panels[kPanels];
    const uint8_t* lows[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      // Where there is no second panel, the last one's products are made twice and dropped once.
      panels[p] = a.panels + smaller(panel + p, num_panels - 1) * a.panel_bytes;
      lows[p] = low_panel(a, smaller(panel + p, num_panels - 1));
    }
    const Outputs outputs = outputs_of(a, a.first_row, panel * kPanelRows);
    vf sums[(kRows > 0 ? kRows : kTileRows) * kAll];
    begin_sums<kAll>(outputs, num_rows, true, sums);
    const uint8_t* ahead[kPanels];
    for (int p = 0; p < kPanels; ++p) ahead[p] = panels[p] + kAheadBytes - bytes_a_block;
    RowsOfTile x = rows_of_tile(a.x, a.first_row, 0);
    for (int64_t block = 0; block < num_blocks; ++block) {
#pragma GCC unroll 8
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
        const BlockVector<F> w = unpack_vector<F>(data, lows[v / kParts], block, v % kParts);
        for (int64_t r = 0; r < num_rows; ++r) {
          vf& sum = sums[r * kAll + v];
          sum = add_block<F>(w, x, r, sum);
        }
      }
      next_block(x);
    }
    store_sums<kAll>(outputs, num_rows, true, sums);
  }
}

/// Weights to ask for while others are multiplied: `bytes` for each block, of kPanelsTogether
/// panels.
struct Prefetch {
  const uint8_t* data = nullptr;
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
template <class F, int kRows>
__attribute__((noinline)) void multiply_rows(const Block<F>* blocks, int64_t num_blocks,
                                             RowsOfTile x, vf* sums, Prefetch* prefetch) {
  vf sum[kRows * kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i) sum[i] = sums[i];
  for (int64_t block = 0; block < num_blocks; ++block) {
    const Block<F>& w = blocks[block];
    if (prefetch != nullptr) prefetch->next_block();
    add_block_rows<F, kRows>(w, x, sum);
    next_block(x);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i) sums[i] = sum[i];
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
  Prefetch* prefetch;  ///< null: none
};

template <class F, int kRows>
HEADRACE_INLINE void chunk_rows(const Chunk<F>& chunk, int64_t row) {
  const PanelRun& a = chunk.run;
  const Outputs outputs = outputs_of(a, row, chunk.first_output);
  // The lines that are written at the end: other rows' lines are far apart, so the processor does
  // not foresee them.
  for (int r = 0; r < kRows; ++r) {
    for (int64_t lane = 0; lane < kPanelsTogether * kPanelRows; lane += 16) {
      __builtin_prefetch(outputs.out + r * outputs.stride + lane, 1);
    }
  }
  vf sums[kRows * kVectors];
  begin_sums<kVectors>(outputs, kRows, chunk.is_first, sums);
  multiply_rows<F, kRows>(chunk.blocks, chunk.num_blocks, rows_of_tile(a.x, row, chunk.first_block),
                          sums, row == a.first_row ? chunk.prefetch : nullptr);
  store_sums<kVectors>(outputs, kRows, chunk.is_last, sums);
}

template <class F>
HEADRACE_INLINE void chunk_all_rows(const Chunk<F>& chunk) {
  const int64_t end = chunk.run.first_row + chunk.run.num_rows;
  for (int64_t row = chunk.run.first_row; row < end;) {
    // Rows that run together are of one tile.
    const int64_t left = smaller(end, (row / kTileRows + 1) * kTileRows) - row;
    row += take_rows<kMostRows>(
        left, [&](auto rows) { chunk_rows<F, decltype(rows)::kCount>(chunk, row); });
  }
}

template <class F>
__attribute__((noinline)) void many_rows(const PanelRun& a) {
  const int64_t num_blocks = a.x.cols / kBlockCols;
  const int64_t num_panels = panels_of(a.num_outputs);
  const int64_t bytes_a_block = a.panel_bytes / num_blocks;
  // Chunks of about the same size.
  const int64_t num_chunks = (num_blocks + kMostChunkBlocks - 1) / kMostChunkBlocks;
  const int64_t chunk_blocks = (num_blocks + num_chunks - 1) / num_chunks;
  Block<F> blocks[kMostChunkBlocks];
  for (int64_t panel = 0; panel < num_panels; panel += kPanelsTogether) {
    const uint8_t* data = a.panels + panel * a.panel_bytes;
    // Where there is no second panel, the first one's products are made twice and dropped once.
    const bool has_second = kPanelsTogether == 2 && panel + 1 < num_panels;
    const uint8_t* const panels[] = {data, data + (has_second ? a.panel_bytes : 0)};
    const uint8_t* const lows[] = {low_panel(a, panel), low_panel(a, panel + (has_second ? 1 : 0))};
    // Also past the last panel: those of the thread's next run most likely lie there, and where no
    // memory is nothing happens.
    const uint8_t* next = data + kPanelsTogether * a.panel_bytes;
    for (int64_t first = 0; first < num_blocks; first += chunk_blocks) {
      const int64_t count = smaller(chunk_blocks, num_blocks - first);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t p = 0; p < kPanelsTogether; ++p) {
          const uint8_t* ahead = panels[p] + (first + i) * bytes_a_block + kUnpackAheadBytes;
          for (int64_t byte = 0; byte < bytes_a_block; byte += 64) __builtin_prefetch(ahead + byte);
        }
        unpack_block(panels, lows, first + i, blocks[i]);
      }
      // Panels are taken as evenly spread over their blocks.
      Prefetch prefetch = {next + first * bytes_a_block, bytes_a_block, a.panel_bytes};
      chunk_all_rows<F>({a, blocks, first, count, panel * kPanelRows, first == 0,
                         first + count == num_blocks, &prefetch});
    }
  }
}

template <class F>
void multiply_panels(const PanelRun& a) {
  if (a.num_rows == 1) return few_rows<F, 2, 1>(a);
  if (a.num_rows <= kTileRows) return few_rows<F, 1, 0>(a);
  many_rows<F>(a);
}

using Q4_0 = Layout<CodesU4, PanelScales::one, 8>;
using Q4_1 = Layout<CodesU4, PanelScales::with_min, 0>;
using Q5_0 = Layout<CodesU5, PanelScales::one, 16>;
using Q5_1 = Layout<CodesU5, PanelScales::with_min, 0>;
using Q8_0 = Layout<CodesS8, PanelScales::one, kFlipSigned ? 128 : 0>;
using Q8Planes = Layout<CodesS8Planes, PanelScales::one, kFlipSigned ? 128 : 0>;
struct Q8Coarse : Layout<CodesU5, PanelScales::one, 0> {
  static constexpr bool kCoarse = true;
};
using Q4_K = Layout<CodesU4, PanelScales::k_min, 0>;
using Q5_K = Layout<CodesU5, PanelScales::k_min, 0>;
using Q6_K = Layout<CodesU6, PanelScales::k_signed, 32>;

/// Of one row: coarse products are made for nothing else.
void multiply_coarse(const PanelRun& a) {
  few_rows<Q8Coarse, 2, 1>(a);
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

const PanelFunction int_panels[kNumIntPanelFormats] = {
    multiply_panels<Q4_0>,     multiply_panels<Q4_1>, multiply_panels<Q5_0>, multiply_panels<Q5_1>,
    multiply_panels<Q8_0>,     multiply_panels<Q4_K>, multiply_panels<Q5_K>, multiply_panels<Q6_K>,
    multiply_panels<Q8Planes>, multiply_coarse,
};

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
