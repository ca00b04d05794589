#include "app/memory_plan.h"

#include <algorithm>

#include "base/checked.h"
#include "kv/cache_group.h"

namespace headrace {
namespace {

/// Blocks that a layer holds at its most for a sequence of `tokens` tokens.
int64_t layer_blocks(const CacheSpec& spec, const MemoryNeeds& needs, int64_t tokens) {
  if (spec.kind == CacheSpec::Kind::none) return 0;
  CacheGeometry geometry;
  geometry.block_tokens = needs.block_tokens;
  geometry.window = spec.kind == CacheSpec::Kind::window ? spec.window : 0;
  return max_blocks_held(geometry, tokens, needs.chunk_tokens);
}

uint64_t token_bytes(const CacheSpec& spec, KvType type) {
  if (spec.kind == CacheSpec::Kind::none) return 0;
  return static_cast<uint64_t>(2 * spec.num_kv_heads * spec.head_dim) * kv_type_bytes(type);
}

}  // namespace

uint64_t kv_bytes(const MemoryNeeds& needs, int64_t tokens) {
  uint64_t sum = 0;
  for (const CacheSpec& spec : needs.caches) {
    sum += static_cast<uint64_t>(layer_blocks(spec, needs, tokens) * needs.block_tokens) *
           token_bytes(spec, needs.kv_type);
  }
  return sum;
}

uint64_t kv_bytes_per_token(const MemoryNeeds& needs) {
  uint64_t sum = 0;
  for (const CacheSpec& spec : needs.caches) sum += token_bytes(spec, needs.kv_type);
  return sum;
}

uint64_t activation_bytes(const MemoryNeeds& needs) {
  // Residual, normed input and sublayer output; queries and attention output; gate, up and their
  // product. Keys and values are small beside them.
  const int64_t row =
      3 * needs.embedding_length + 3 * needs.attention_length + 3 * needs.feed_forward_length;
  const uint64_t floats = static_cast<uint64_t>(needs.chunk_tokens * row) +
                          static_cast<uint64_t>(needs.logit_rows * needs.vocab_size);
  return floats * sizeof(float);
}

int64_t largest_context(const MemoryNeeds& needs, uint64_t limit_bytes, int64_t most) {
  const uint64_t budget = limit_bytes - limit_bytes / 10;
  const uint64_t fixed = needs.weight_bytes + activation_bytes(needs);
  const auto fits = [&](int64_t tokens) { return fixed + kv_bytes(needs, tokens) <= budget; };
  if (fits(most)) return most;
  int64_t low = 0;  // blocks that fit
  int64_t high = ceil_div(most, needs.block_tokens);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle * needs.block_tokens) ? low : high) = middle;
  }
  return low * needs.block_tokens;
}

}  // namespace headrace
