// The layout inside a KV page, and the view of one layer's pages. The only place that knows where a
// key or a value lies. Must not know who owns which block.
//
// A block is `block_tokens` tokens over all layers of a cache group; a page is one layer's share of
// a block. Inside a page, for each KV head in turn:
//
// f32, f16:
//
//     keys    [block_tokens / 16][head_dim][16]   panels of 16 tokens: QK^T reads 16 keys at once
//     values  [block_tokens][head_dim]
//
// q8, q12: a panel for each 16 tokens, padded to a multiple of 64 bytes, with head_dim rounded up
// to dim, a multiple of 16 (above 256, of 64):
//
//     keys          [dim / 2][16][2]  int8 (q8) or int16 (q12): codes of the rotated key
//     values        [8][dim][2]       int8: codes of the rotated value; two tokens are together
//     key scales    [chunks][16]      f16: a rotated key is about scale * code
//     value scales  [16]              f16, log2: a rotated value is about 2^scale * code
//
// This is also the form in which every backend gives pages out and takes them in
// (KvStorage::read_block), whatever its own memory looks like; numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace headrace {

/// Element type of cached keys and values.
enum class KvType : uint8_t {
  f32,
  f16,
  q8,   ///< codes of 8 bits
  q12,  ///< keys: codes of 13 bits in 16; values: codes of 8 bits
};

inline constexpr KvType kKvTypes[] = {KvType::f32, KvType::f16, KvType::q8, KvType::q12};
/// What fast paths use unless told otherwise: docs/decisions/kv-type.md.
inline constexpr KvType kDefaultKvType = KvType::q12;

constexpr std::string_view kv_type_name(KvType type) {
  switch (type) {
    case KvType::f32:
      return "f32";
    case KvType::f16:
      return "f16";
    case KvType::q8:
      return "q8";
    case KvType::q12:
      return "q12";
  }
  return "unknown";
}

/// The type of that name, if there is one.
constexpr std::optional<KvType> kv_type_named(std::string_view name) {
  for (const KvType type : kKvTypes) {
    if (kv_type_name(type) == name) return type;
  }
  return std::nullopt;
}

/// In a block table: this block was given back (it slid out of the window).
inline constexpr int32_t kNoBlock = -1;

inline constexpr int64_t kKeyPanelTokens = 16;

constexpr bool is_quantized(KvType type) {
  return type == KvType::q8 || type == KvType::q12;
}

/// Sizes in bytes of a q8 or q12 panel: 16 tokens of one head.
///
/// A key is rotated by an orthogonal matrix before it is rounded, and so is the query that it
/// meets: their product stays, but a key's few large features are spread over all, so that one
/// scale suits them. Values are rotated too, and attention's result is rotated back. The matrix is
/// Hadamard's of the largest power of two that divides dim, over each such stretch, without its
/// factor of 1 / sqrt(size). Scales of keys are for each chunk of 64 features (of all, where that
/// does not divide dim), those of values for all.
struct Q8Panel {
  constexpr Q8Panel(KvType type, int64_t head_dim)
      : key_bytes(type == KvType::q12 ? 2 : 1),
        dim(head_dim <= 256 ? (head_dim + 15) / 16 * 16 : (head_dim + 63) / 64 * 64),
        chunks(dim % 64 == 0 ? dim / 64 : 1) {}

  int64_t key_bytes;  ///< of a code
  int64_t dim;
  int64_t chunks;

  constexpr int64_t values() const { return kKeyPanelTokens * dim * key_bytes; }
  constexpr int64_t key_scales() const { return values() + kKeyPanelTokens * dim; }
  constexpr int64_t value_scales() const { return key_scales() + 2 * kKeyPanelTokens * chunks; }
  constexpr int64_t bytes() const { return (value_scales() + 2 * kKeyPanelTokens + 63) / 64 * 64; }
};

struct KvPageLayout {
  KvType type = KvType::f32;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t block_tokens = 16;  ///< a multiple of 16

  size_t head_bytes() const {
    if (is_quantized(type)) {
      return static_cast<size_t>(block_tokens / kKeyPanelTokens * panel().bytes());
    }
    return static_cast<size_t>(head_elements()) * (type == KvType::f32 ? 4 : 2);
  }
  size_t page_bytes() const { return static_cast<size_t>(num_kv_heads) * head_bytes(); }

  // Of f32 and f16:
  int64_t head_elements() const { return 2 * block_tokens * head_dim; }
  /// Element index, in the page, of key `dim` of token `t` (within the block).
  int64_t key_index(int64_t head, int64_t t, int64_t dim) const {
    return head * head_elements() + (t / kKeyPanelTokens) * kKeyPanelTokens * head_dim +
           dim * kKeyPanelTokens + t % kKeyPanelTokens;
  }
  /// Element index, in the page, of value 0 of token `t`; the head's values are contiguous.
  int64_t value_index(int64_t head, int64_t t) const {
    return head * head_elements() + block_tokens * head_dim + t * head_dim;
  }

  // Of q8 and q12:
  Q8Panel panel() const { return {type, head_dim}; }
  /// Byte, in the page, at which the panel with token `t` begins.
  int64_t panel_at(int64_t head, int64_t t) const {
    const int64_t panels = block_tokens / kKeyPanelTokens;
    return (head * panels + t / kKeyPanelTokens) * panel().bytes();
  }
};

/// Zeroes the slots of a page from `first_slot` to the end.
void clear_slots(const KvPageLayout& layout, int64_t first_slot, std::byte* page);

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
