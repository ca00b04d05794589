// See kv_view.h.
#include "backend/kv_view.h"

#include <cstring>

namespace headrace {
namespace {

void clear_numbers(const KvPageLayout& layout, int64_t head, int64_t slot, std::byte* page) {
  const int64_t bytes = layout.type == KvType::f32 ? 4 : 2;
  for (int64_t d = 0; d < layout.head_dim; ++d) {
    std::memset(page + layout.key_index(head, slot, d) * bytes, 0, static_cast<size_t>(bytes));
  }
  std::memset(page + layout.value_index(head, slot) * bytes, 0,
              static_cast<size_t>(layout.head_dim * bytes));
}

void clear_codes(const Q8Panel& sizes, int64_t slot, std::byte* panel) {
  const auto clear = [&](int64_t at, int64_t num_bytes) {
    std::memset(panel + at, 0, static_cast<size_t>(num_bytes));
  };
  const int64_t pair_bytes = 2 * sizes.key_bytes;
  for (int64_t d = 0; d < sizes.dim / 2; ++d) {
    clear((d * kKeyPanelTokens + slot) * pair_bytes, pair_bytes);
  }
  for (int64_t d = 0; d < sizes.dim; ++d) {
    clear(sizes.values() + (slot / 2 * sizes.dim + d) * 2 + slot % 2, 1);
  }
  for (int64_t chunk = 0; chunk < sizes.chunks; ++chunk) {
    clear(sizes.key_scales() + 2 * (chunk * kKeyPanelTokens + slot), 2);
  }
  clear(sizes.value_scales() + 2 * slot, 2);
}

}  // namespace

void clear_slots(const KvPageLayout& layout, int64_t first_slot, std::byte* page) {
  for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
    for (int64_t slot = first_slot; slot < layout.block_tokens; ++slot) {
      if (is_quantized(layout.type)) {
        clear_codes(layout.panel(), slot % kKeyPanelTokens, page + layout.panel_at(head, slot));
      } else {
        clear_numbers(layout, head, slot, page);
      }
    }
  }
}

}  // namespace headrace
