#include "app/memory_plan.h"

#include <algorithm>

#include "base/checked.h"
#include "base/saturating.h"
#include "kv/cache_group.h"
#include "model/decoder.h"

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

uint64_t product(int64_t a, int64_t b) {
  return saturating_mul(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
}

uint64_t token_bytes(const CacheSpec& spec, const MemoryNeeds& needs) {
  if (spec.kind == CacheSpec::Kind::none) return 0;
  const KvPageLayout head{needs.kv_type, 1, spec.head_dim, needs.block_tokens};
  return saturating_mul(static_cast<uint64_t>(spec.num_kv_heads), head.page_bytes()) /
         static_cast<uint64_t>(needs.block_tokens);
}

}  // namespace

MemoryNeeds memory_needs(const ModelConfig& config, int64_t vocab_size) {
  MemoryNeeds needs;
  needs.caches = cache_specs_of(config);
  needs.activations = activation_sizes_of(config, vocab_size);
  return needs;
}

uint64_t kv_bytes(const MemoryNeeds& needs, int64_t tokens) {
  uint64_t sum = 0;
  for (const CacheSpec& spec : needs.caches) {
    const uint64_t held = product(layer_blocks(spec, needs, tokens), needs.block_tokens);
    sum = saturating_add(sum, saturating_mul(held, token_bytes(spec, needs)));
  }
  return sum;
}

uint64_t kv_bytes_per_token(const MemoryNeeds& needs) {
  uint64_t sum = 0;
  for (const CacheSpec& spec : needs.caches) {
    sum = saturating_add(sum, token_bytes(spec, needs));
  }
  return sum;
}

uint64_t resident_bytes(const MemoryNeeds& needs) {
  return saturating_add(saturating_add(needs.weight_bytes, needs.adapter_bytes),
                        needs.scratch_bytes);
}

uint64_t activation_bytes(const MemoryNeeds& needs) {
  const ActivationSizes& sizes = needs.activations;
  // A product's input made anew: in floats, and as integers of up to two planes and 16 bits, with
  // what each 32 of them have beside.
  constexpr uint64_t kCopyBytes = sizeof(float) + 5;
  const uint64_t copy =
      saturating_mul<uint64_t>(product(needs.chunk_tokens, widest_input(sizes)), kCopyBytes);
  const uint64_t adapters = buffer_bytes(needs.adapters, needs.chunk_tokens, needs.logit_rows);
  return saturating_add(
      saturating_add(buffer_bytes(sizes, needs.chunk_tokens, needs.logit_rows), adapters), copy);
}

uint64_t total_bytes(const MemoryNeeds& needs, int64_t tokens) {
  return saturating_add(saturating_add(resident_bytes(needs), activation_bytes(needs)),
                        kv_bytes(needs, tokens));
}

uint64_t budget_bytes(uint64_t limit_bytes) {
  return limit_bytes - limit_bytes / 10;
}

int64_t largest_context(const MemoryNeeds& needs, uint64_t limit_bytes, int64_t most) {
  const uint64_t budget = budget_bytes(limit_bytes);
  const auto fits = [&](int64_t tokens) { return total_bytes(needs, tokens) <= budget; };
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
