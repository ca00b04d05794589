// The kernels of one instruction set, as a table of functions over plain pointers. Instruction-set
// files include this header, so it holds nothing but plain structs: no inline functions, no
// templates, no standard containers (style.md, rule 7).
//
// A kernel never allocates, starts threads, logs or keeps state; it computes a part of an output.
// Every kernel computes one token (row) by the same operations in the same order, however many rows
// it is given: see docs/architecture.md, "Batch invariance".
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/activation.h"
#include "backend/cpu/kernels/attention_args.h"
#include "backend/cpu/kernels/panel_layout.h"
#include "backend/cpu/kernels/sampling_kernels.h"
#include "backend/cpu/kernels/tile_layout.h"

namespace headrace {

/// Output rows of a weight matrix that are interleaved, and the lanes of every kernel's arithmetic:
/// a kernel sees 16 lanes whatever the width of the machine's vectors.
inline constexpr int64_t kPanelRows = 16;

/// Consecutive panels of float weights times rows of activations.
struct FloatRun {
  const void* panels = nullptr;  ///< each [cols][16], of f32, f16 or bf16
  const float* x = nullptr;      ///< [num_rows, cols], x_stride apart
  int64_t x_stride = 0;
  int64_t cols = 0;
  int64_t num_rows = 0;
  int64_t num_outputs = 0;      ///< weight rows; the last panel may have fewer than 16
  const float* bias = nullptr;  ///< [num_outputs] or null
  float* out = nullptr;         ///< [num_rows, num_outputs], out_stride apart
  int64_t out_stride = 0;
};

/// Rows of a tile of QuantizedRows.
inline constexpr int64_t kTileRows = 8;

/// Columns of a step, which a dot product takes at once, and steps of a block that are wide.
inline constexpr int64_t kStepCols = 4;
inline constexpr int64_t kWideSteps = 2;

/// Rows of activations as integers, with a scale for each row and block of 32 columns, in the one
/// or the other form (KernelTable::has_wide_steps):
///
/// Two planes: x[r][k] is about scale[r][k / 32] * integer[r][k] / 128, integer = 128 * high + low,
/// high in [-127, 127], low in [-64, 63]. Only blocks with large numbers have a low plane; in the
/// others low is 0. For tables that multiply signed codes in 16 bits (KernelTable::needs_whole) the
/// integers stand in `whole` as well, the four columns of a step in the order 0, 2, 1, 3.
///
/// Wide steps: x[r][k] is about scale[r][k / 32] * integer[r][k], integer = high, in [-127, 127];
/// in those two steps of a block that have its largest numbers integer = 128 * wide + high, wide in
/// [-127, 127], high in [-64, 63].
///
/// Which blocks and columns those are depends on the row alone: docs/decisions/. cols is a multiple
/// of 32.
///
/// Rows lie in tiles of kTileRows; the last tile has the rest. A tile of h rows lies block by block
/// of 32 columns, so that a kernel walks through memory from end to end: high, low and whole are
/// [tile][block][h][32], wide is [tile][block][h][2][4], wide_steps [tile][block][h][2], scale,
/// scaled_sum and has_low [tile][block][h], negated_sums [tile][block][3][h].
struct QuantizedRows {
  int8_t* high = nullptr;
  // Two planes only:
  int8_t* low = nullptr;
  uint8_t* has_low = nullptr;  ///< 1, or 0 where low is all zeros and need not be read
  int16_t* whole = nullptr;    ///< null where the table does not need it
  bool has_whole = false;      ///< whether there is anything in it
  // Wide steps only:
  int8_t* wide = nullptr;
  uint8_t* wide_steps = nullptr;  ///< step s is columns 4 s to 4 s + 3 of the block
  float* scale = nullptr;
  float* scaled_sum = nullptr;      ///< scale (/ 128) * the block's sum of integers
  int32_t* negated_sums = nullptr;  ///< -1 * sums of a block's integers: all, first 16, last 16
  int64_t cols = 0;
  int64_t num_rows = 0;
};

/// Consecutive panels of packed weights times a range of rows of activations.
struct PanelRun {
  const uint8_t* panels = nullptr;      ///< see panel_layout.h
  int64_t panel_bytes = 0;              ///< from one panel to the next
  const uint8_t* low_panels = nullptr;  ///< of q8_planes: their lower bits
  QuantizedRows x;
  int64_t first_row = 0;  ///< of x and out; a multiple of kTileRows
  int64_t num_rows = 0;
  int64_t num_outputs = 0;      ///< weight rows; the last panel may have fewer than 16
  const float* bias = nullptr;  ///< [num_outputs] or null
  float* out = nullptr;         ///< [x.num_rows, num_outputs], out_stride apart
  int64_t out_stride = 0;
};

/// Rows of activations as bf16, to nearest even: groups of 16 rows, the last one filled with zeros,
/// each [cols / 32][16 pairs of columns][16 rows][2]. One row alone: its columns in their order.
/// cols is a multiple of 32.
struct TileRows {
  uint16_t* tiles = nullptr;  ///< aligned to 64 bytes
  int64_t cols = 0;
  int64_t num_rows = 0;
};

/// Consecutive panels of weights in the order of tiles times a range of rows of activations.
struct TileRun {
  const uint8_t* panels = nullptr;  ///< see tile_layout.h
  int64_t panel_bytes = 0;          ///< from one panel to the next
  TileRows x;
  int64_t first_row = 0;        ///< of x and out; a multiple of kTileGroupRows
  int64_t num_rows = 0;         ///< at most kTileMostRows
  int64_t num_outputs = 0;      ///< weight rows; the last panel may have fewer than 16
  const float* bias = nullptr;  ///< [num_outputs] or null
  float* out = nullptr;         ///< [x.num_rows, num_outputs], out_stride apart
  int64_t out_stride = 0;
  void* scratch = nullptr;  ///< kTileScratchBytes, aligned to 64 bytes
};

using PanelFunction = void (*)(const PanelRun& args);
using TileFunction = void (*)(const TileRun& args);

struct KernelTable {
  const char* name;

  /// Quantises one row of x.cols columns into row `row` of x. Numbers that are not finite make
  /// their block's scale NaN. Null: this table multiplies floats only, and weights are not packed
  /// for it.
  void (*quantize_row)(const float* values, int64_t row, const QuantizedRows& x);
  /// The form that quantize_row writes and int_panels reads: wide steps, or two planes.
  bool has_wide_steps = false;
  /// Of two planes: int_panels reads QuantizedRows::whole where more rows than a tile has meet
  /// signed codes.
  bool needs_whole = false;
  /// [kNumIntPanelFormats]: out[r][o] = sum over k of x[r][k] * weight[o][k] (+ bias[o]). Null
  /// where quantize_row is.
  const PanelFunction* int_panels;

  /// Rounds group `group` of kTileGroupRows rows, fewer at the end; its rows begin at `values`,
  /// stride apart. Null: this table has no tiles. Where it has, weights are
  /// packed in the order of tiles, and quantize_row and int_panels are null.
  void (*tile_rows)(const float* values, int64_t stride, int64_t group,
                    const TileRows& x) = nullptr;
  /// [kNumPanelFormats]: the same products. Null where tile_rows is.
  const TileFunction* tile_panels = nullptr;

  // out[r][o] = sum over k of x[r][k] * weight[o][k] (+ bias[o]), by the type of the weights. Null:
  // this table has only floats.
  void (*f32_panels)(const FloatRun& args);
  void (*f16_panels)(const FloatRun& args);
  void (*bf16_panels)(const FloatRun& args);

  void (*attend)(const AttentionTile& args);
  const Q8Kernels* q8;
  /// total = total merged with part, for one row: (max, sum, out [head_dim]).
  void (*attend_merge)(float* total_max, float* total_sum, float* total_out, float part_max,
                       float part_sum, const float* part_out, int64_t head_dim);

  // One row of n features each.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);
  /// bias may be null.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int64_t n, float eps,
                     float* out);
  /// Rotates one head; cos, sin: [num_pairs].
  void (*rope_neox)(float* head, const float* cos, const float* sin, int64_t num_pairs);
  /// out = activation(x) * up, or activation(x) where up is null.
  void (*activate)(Activation activation, const float* x, const float* up, int64_t n, float* out);
  void (*add)(float* x, const float* delta, int64_t n);
  void (*scale)(const float* x, float factor, int64_t n, float* out);
  /// x += factor * delta.
  void (*add_scaled)(float* x, const float* delta, float factor, int64_t n);
  /// out = e^x / sum(e^x). Any NaN makes all of them NaN.
  void (*softmax)(const float* x, int64_t n, float* out);
  /// out = 1 / (1 + e^-x).
  void (*sigmoid)(const float* x, int64_t n, float* out);
  void (*soft_cap)(float* x, float cap, int64_t n);
  void (*clamp)(float* x, float limit, int64_t n);
  /// x *= 1 / (1 + e^-gate).
  void (*gate)(float* x, float gate, int64_t n);
  /// The index of the first largest value; -1 if any value is NaN.
  int64_t (*argmax)(const float* x, int64_t n);
  /// Rounds to nearest even; magnitudes beyond the largest finite f16 become that, NaN stays.
  void (*to_f16)(const float* x, int64_t n, uint16_t* out);

  // What the machine does at most with this table, for the bounds of `headrace bench`.
  /// The instruction that does most of this table's multiply-adds, "vpdpbusd".
  const char* peak_instruction;
  /// Runs it `rounds` times in independent chains of registers, enough to fill the pipeline, with
  /// what accumulating a product needs besides and nothing else. Returns the multiply-adds done;
  /// `sink` [16], small numbers, is read and changed, so that the compiler leaves nothing out.
  int64_t (*peak)(int64_t rounds, float* sink);
  /// Reads num_bytes (a multiple of 256, 64-byte aligned) from front to back, each line asked for
  /// prefetch_bytes ahead (0: not). The result depends on every byte.
  uint64_t (*read_memory)(const std::byte* data, int64_t num_bytes, int64_t prefetch_bytes);

  const SamplingKernels* sampling;

  /// Weights of the smallest output head that is faster to search by its upper bits than to read:
  /// the more instructions unpacking takes, the more memory has to be saved.
  int64_t least_searched = int64_t{64} << 20;
};

}  // namespace headrace
