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

#include "backend/activation_precision.h"
#include "backend/cpu/kernels/panel_layout.h"
#include "backend/cpu/kernels/tile_layout.h"

namespace headrace {

/// Output rows of a weight matrix that are interleaved, and the lanes of every kernel's arithmetic:
/// a kernel sees 16 lanes whatever the width of the machine's vectors.
inline constexpr int64_t kPanelRows = 16;

/// Keys per step of the online softmax, aligned to absolute positions.
inline constexpr int64_t kAttentionBlockKeys = 128;

/// Query rows of one call to KernelTable::attend.
inline constexpr int64_t kMaxQueryRows = 32;

/// One panel of float weights times rows of activations.
struct FloatPanel {
  const float* panel = nullptr;  ///< [cols][16]
  const float* x = nullptr;      ///< [num_rows, cols], x_stride apart
  int64_t x_stride = 0;
  int64_t cols = 0;
  int64_t num_rows = 0;
  const float* bias = nullptr;  ///< [num_lanes] or null
  float* out = nullptr;         ///< [num_rows, num_lanes], out_stride apart
  int64_t out_stride = 0;
  int64_t num_lanes = 0;  ///< weight rows of this panel that exist, 1 to 16
};

/// Rows of a tile of QuantizedRows.
inline constexpr int64_t kTileRows = 8;

/// What a linear layer's input becomes before it is multiplied with a matrix.
enum class ActivationForm : uint8_t {
  f32,    ///< stays as it is
  int8,   ///< QuantizedRows with one plane
  int15,  ///< QuantizedRows with two planes
  bf16,   ///< QuantizedRows as tiles of bf16; matrices are packed in the order of tiles
};
inline constexpr int kNumActivationForms = 4;

/// Rows of activations as integers, with a scale for each row and block of 32 columns.
///   int8:   x[r][k] is about scale[r][k / 32] * high[r][k]
///   int15:  x[r][k] is about scale[r][k / 32] * (128 * high[r][k] + low[r][k])
/// high in [-127, 127], low in [-64, 63]. cols is a multiple of 32. Which matrices use which:
/// docs/decisions/.
///
/// Rows lie in tiles of kTileRows; the last tile has the rest. A tile of h rows lies block by block
/// of 32 columns, so that a kernel walks through memory from end to end: high and low are
/// [tile][block][h][32], scale and scaled_sum [tile][block][h], negated_sums [tile][block][3][h].
struct QuantizedRows {
  int8_t* high = nullptr;
  int8_t* low = nullptr;  ///< int15 only
  float* scale = nullptr;
  float* scaled_sum = nullptr;      ///< scale * the block's sum of integers
  int32_t* negated_sums = nullptr;  ///< -1 * sums of a block's integers: all, first 16, last 16
  /// bf16 only, in place of all the others: groups of 16 rows, the last one filled with zeros, each
  /// [cols / 32][16 pairs of columns][16 rows][2]. One row alone: its columns in their order.
  uint16_t* tiles = nullptr;
  int64_t cols = 0;
  int64_t num_rows = 0;
};

/// Consecutive panels of packed weights times a range of rows of activations.
struct PanelRun {
  const uint8_t* panels = nullptr;  ///< each: scales, then codes; see panel_layout.h
  int64_t panel_bytes = 0;          ///< from one panel to the next
  int64_t scales_bytes = 0;         ///< from a panel's start to its codes
  QuantizedRows x;
  int64_t first_row = 0;  ///< of x and out; a multiple of kTileRows, bf16: of kTileGroupRows
  int64_t num_rows = 0;
  int64_t num_outputs = 0;      ///< weight rows; the last panel may have fewer than 16
  const float* bias = nullptr;  ///< [num_outputs] or null
  float* out = nullptr;         ///< [x.num_rows, num_outputs], out_stride apart
  int64_t out_stride = 0;
  void* scratch = nullptr;  ///< bf16: tile_scratch_bytes(x.cols), aligned to 64 bytes
};

/// Online softmax of some query rows over one range of keys of one KV head.
struct AttentionTile {
  // The pages of one layer, see kv_view.h. Offsets are in elements from a page's start.
  const std::byte* pages = nullptr;
  size_t block_stride_bytes = 0;
  const int32_t* block_table = nullptr;
  int64_t block_tokens = 0;
  int64_t head_dim = 0;
  int64_t key_offset = 0;    ///< of this head's key panels [block_tokens / 16][head_dim][16]
  int64_t value_offset = 0;  ///< of this head's values [block_tokens][head_dim]
  bool f16 = false;          ///< else f32

  float scale = 1.0F;
  float soft_cap = 0.0F;  ///< 0: none

  int64_t num_rows = 0;             ///< 1 to kMaxQueryRows
  const float* const* q = nullptr;  ///< [num_rows] pointers to [head_dim]
  const int64_t* lo = nullptr;      ///< [num_rows]: the row sees keys [lo, hi)
  const int64_t* hi = nullptr;
  int64_t begin = 0;  ///< absolute key range of this call; begin is a multiple of
  int64_t end = 0;    ///< kAttentionBlockKeys

  // State, written afresh: of each row the largest score, the sum of exp(score - largest), and
  // the values weighted by it.
  float* max = nullptr;      ///< [num_rows]
  float* sum = nullptr;      ///< [num_rows]
  float* out = nullptr;      ///< [num_rows, head_dim]
  float* scratch = nullptr;  ///< [num_rows * kAttentionBlockKeys]
};

using PanelFunction = void (*)(const PanelRun& args);

/// How inputs of one form are made and multiplied.
struct FormKernels {
  /// Quantises one row of x.cols columns into row `row` of x. Numbers that are not finite make
  /// their block's scale NaN.
  void (*quantize_row)(const float* values, int64_t row, const QuantizedRows& x) = nullptr;
  /// [kNumPanelFormats]: out[r][o] = sum over k of x[r][k] * weight[o][k] (+ bias[o]).
  const PanelFunction* panels = nullptr;
  /// bf16, in place of quantize_row: rounds a group of kTileGroupRows rows, of which the first in
  /// all is values; rows are stride apart.
  void (*tile_rows)(const float* values, int64_t stride, int64_t group,
                    const QuantizedRows& x) = nullptr;
};

struct KernelTable {
  const char* name;

  /// By ActivationPrecision: the form that the input of a packed matrix takes. f32: this table
  /// multiplies floats only, and weights are not packed for it.
  ActivationForm form[kNumActivationPrecisions];
  /// By ActivationForm; null where no precision asks for it, and for f32.
  FormKernels forms[kNumActivationForms];

  /// out[r][lane] = sum over k of x[r][k] * panel[k][lane] (+ bias[lane]).
  void (*float_panel)(const FloatPanel& args);

  void (*attend)(const AttentionTile& args);
  /// total = total merged with part, for one row: (max, sum, out [head_dim]).
  void (*attend_merge)(float* total_max, float* total_sum, float* total_out, float part_max,
                       float part_sum, const float* part_out, int64_t head_dim);

  // One row of n features each.
  void (*rms_norm)(const float* x, const float* weight, int64_t n, float eps, float* out);
  /// Rotates one head; cos, sin: [num_pairs].
  void (*rope_neox)(float* head, const float* cos, const float* sin, int64_t num_pairs);
  void (*rope_interleaved)(float* head, const float* cos, const float* sin, int64_t num_pairs);
  void (*silu_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*gelu_tanh_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*add)(float* x, const float* delta, int64_t n);
  void (*scale)(const float* x, float factor, int64_t n, float* out);
  void (*soft_cap)(float* x, float cap, int64_t n);
  /// The index of the first largest value; -1 if any value is NaN.
  int64_t (*argmax)(const float* x, int64_t n);
  /// Rounds to nearest even; magnitudes beyond the largest finite f16 become that, NaN stays.
  void (*to_f16)(const float* x, int64_t n, uint16_t* out);
};

}  // namespace headrace
