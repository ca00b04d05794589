// What attention kernels are given: queries, pages and memory for results. Plain structs only, see
// kernel_table.h. How a page is laid out: backend/kv_view.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace {

/// Keys per step of the online softmax over f32 and f16 pages, aligned to absolute positions.
inline constexpr int64_t kAttentionBlockKeys = 128;
/// The same over q8 and q12 pages.
inline constexpr int64_t kQ8BlockKeys = 64;

/// Query rows of one call to KernelTable::attend or Q8Kernels::attend.
inline constexpr int64_t kMaxQueryRows = 64;

/// The most features of a head.
inline constexpr int64_t kMaxHeadDim = 4096;

/// Online softmax of some query rows over one range of keys of one KV head, over f32 or f16 pages.
struct AttentionTile {
  // The pages of one layer. Offsets are in elements from a page's start.
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

/// Q8Panel of kv_view.h in numbers: sizes and byte offsets.
struct Q8Shape {
  int64_t head_dim = 0;
  int64_t dim = 0;        ///< head_dim rounded up
  int64_t chunks = 0;     ///< scales of a key: one for each dim / chunks features, at most 256
  int64_t key_bytes = 0;  ///< of a key's code: 1, or 2
  int64_t values = 0;
  int64_t key_scales = 0;
  int64_t value_scales = 0;
};

/// The largest codes: of a key of one byte or two, and of a query. 8 bits would not do for queries:
/// they would add nearly half of what those of keys do to the error, and there are far fewer
/// queries. A sum of 256 products of the largest is below 2^31.
inline constexpr int32_t kLargestByteKey = 127;
inline constexpr int32_t kLargestWordKey = 4095;
inline constexpr int32_t kLargestQueryCode = 2047;

/// Queries for Q8Kernels::attend: rotated like keys and rounded, a scale for each chunk. Memory is
/// for a number of rows rounded up to a multiple of 16.
struct Q8Queries {
  int16_t* codes = nullptr;  ///< [rows][dim]
  /// [rows][chunks]: the part of q . k that a chunk gives is, in base-2 units, about
  /// factor * (codes . key).
  float* factors = nullptr;
};

/// Consecutive tokens of one head, to be written to a q8 or q12 panel.
struct Q8Store {
  const float* k = nullptr;  ///< of the first token; `stride` floats from one to the next
  const float* v = nullptr;
  int64_t stride = 0;
  int64_t num_tokens = 0;
  int64_t slot = 0;  ///< of the first token in the panel; slot + num_tokens <= 16
  Q8Shape shape;
  std::byte* panel = nullptr;
};

/// As AttentionTile, over q8 or q12 pages. Products are sums of integers and exact; the softmax is
/// float32 with weights rounded to 15 bits of their largest in each kQ8BlockKeys
/// keys.
struct Q8AttentionTile {
  const std::byte* pages = nullptr;  ///< of the layer, at this head's first panel
  size_t block_stride_bytes = 0;
  const int32_t* block_table = nullptr;
  int64_t block_tokens = 0;
  int64_t panel_bytes = 0;
  Q8Shape shape;

  float soft_cap = 0.0F;  ///< 0: none

  int64_t num_rows = 0;  ///< 1 to kMaxQueryRows
  Q8Queries queries;
  const int64_t* lo = nullptr;  ///< [num_rows]: the row sees keys [lo, hi)
  const int64_t* hi = nullptr;
  int64_t begin = 0;  ///< absolute key range of this call; begin is a multiple of kQ8BlockKeys
  int64_t end = 0;

  // State, written afresh, as in AttentionTile; but a row of `out` has shape.dim elements, of
  // rotated values, and `max` and `sum` are memory for num_rows rounded up to a multiple of 16.
  float* max = nullptr;
  float* sum = nullptr;
  float* out = nullptr;
  float* scratch = nullptr;  ///< q8_scratch_floats(), 64-byte aligned
};

/// Kernels of q8 and q12 pages.
struct Q8Kernels {
  /// Numbers that are not finite make their scale NaN.
  void (*store)(const Q8Store& args);
  /// Prepares num_rows queries for attend. Numbers that are not finite make their row's factor NaN.
  void (*quantize_queries)(const float* const* q, int64_t num_rows, float scale,
                           const Q8Queries& out, const Q8Shape& shape);
  void (*attend)(const Q8AttentionTile& args);
  /// out [head_dim] = factor * a row of the state's values, [dim], rotated back. Changes the row.
  void (*finish_row)(float* row, float factor, float* out, const Q8Shape& shape);
};

}  // namespace headrace
