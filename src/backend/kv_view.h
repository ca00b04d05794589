// The layout inside a KV page, and the view of one layer's pages. The only place that knows where a
// key or a value lies. Must not know who owns which block.
//
// A block is `block_tokens` tokens over all layers of a cache group; a page is one layer's share of
// a block. Inside a page, for each KV head in turn:
//   keys    [block_tokens / 16][head_dim][16]   panels of 16 tokens, so that QK^T reads 16 keys at
//   once values  [block_tokens][head_dim]
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace headrace {

/// Element type of cached keys and values.
enum class KvType : uint8_t { f32, f16 };

constexpr std::string_view kv_type_name(KvType type) {
  return type == KvType::f32 ? "f32" : "f16";
}

constexpr size_t kv_type_bytes(KvType type) {
  return type == KvType::f32 ? 4 : 2;
}

/// In a block table: this block was given back (it slid out of the window).
inline constexpr int32_t kNoBlock = -1;

inline constexpr int64_t kKeyPanelTokens = 16;

struct KvPageLayout {
  KvType type = KvType::f32;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t block_tokens = 16;  ///< a multiple of 16

  int64_t head_elements() const { return 2 * block_tokens * head_dim; }
  size_t page_bytes() const {
    return static_cast<size_t>(num_kv_heads * head_elements()) * kv_type_bytes(type);
  }
  /// Element index, in the page, of key `dim` of token `t` (within the block).
  int64_t key_index(int64_t head, int64_t t, int64_t dim) const {
    return head * head_elements() + (t / kKeyPanelTokens) * kKeyPanelTokens * head_dim +
           dim * kKeyPanelTokens + t % kKeyPanelTokens;
  }
  /// Element index, in the page, of value 0 of token `t`; the head's values are contiguous.
  int64_t value_index(int64_t head, int64_t t) const {
    return head * head_elements() + block_tokens * head_dim + t * head_dim;
  }
};

/// One layer's pages: page of block b begins at base + b * block_stride_bytes.
struct KvView {
  std::byte* base = nullptr;
  size_t block_stride_bytes = 0;
  KvPageLayout layout;

  std::byte* page(int32_t block) const {
    return base + static_cast<size_t>(block) * block_stride_bytes;
  }
};

/// One sequence's rows in a step, as attention and KV writes see it, for one cache group.
struct KvSequence {
  int64_t first_row = 0;       ///< its first row in the step's activations
  int64_t num_rows = 0;        ///< consecutive tokens
  int64_t first_position = 0;  ///< absolute position of the first of them
  /// Block ids by absolute block index (position / block_tokens); kNoBlock where given back.
  std::span<const int32_t> block_table;
};

}  // namespace headrace
