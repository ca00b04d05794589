// See cache_group.h.
#include "kv/cache_group.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace headrace {

int64_t CacheGeometry::first_block_read(int64_t position) const {
  if (window == 0) return 0;
  return std::max<int64_t>(0, position - window + 1) / block_tokens;
}

int64_t max_blocks_held(const CacheGeometry& geometry, int64_t max_tokens,
                        int64_t max_step_tokens) {
  const int64_t all = ceil_div(max_tokens, geometry.block_tokens);
  if (geometry.window == 0) return all;
  // A step's rows and the window - 1 keys before the first of them, wherever the block borders lie:
  // n consecutive tokens touch at most (n - 2) / block_tokens + 2 blocks, rounded down.
  const int64_t span = geometry.window - 1 + max_step_tokens;
  return std::min(all, (std::max<int64_t>(span, 2) - 2) / geometry.block_tokens + 2);
}

CacheGroup::CacheGroup(const CacheGeometry& geometry, int32_t num_blocks, PrefixLog* log,
                       int32_t number)
    : geometry_(geometry),
      pool_(num_blocks),
      prefixes_(num_blocks, geometry.block_tokens),
      log_(log),
      number_(number) {}

std::optional<int32_t> CacheGroup::allocate() {
  const auto block = pool_.allocate();
  if (block && prefixes_.contains(*block)) {
    --num_cached_;
    ++num_evictions_;
    forget(*block);  // it has a reference now
  }
  return block;
}

void CacheGroup::retain(int32_t block) {
  if (pool_.references(block) == 0 && prefixes_.contains(block)) --num_cached_;
  pool_.retain(block);
}

void CacheGroup::release(int32_t block) {
  const bool is_known = prefixes_.contains(block);
  pool_.release(block, is_known);
  if (is_known && pool_.references(block) == 0) ++num_cached_;
}

int32_t CacheGroup::remember(int32_t block, const BlockHash& hash, const BlockHash& parent,
                             std::span<const TokenId> tokens) {
  HEADRACE_CHECK_GT(pool_.references(block), 0);
  const bool was_known = prefixes_.contains(block);
  const int32_t found = prefixes_.insert(block, hash, parent, tokens);
  if (found == block && !was_known && log_ != nullptr) log_->stored(number_, hash, parent, tokens);
  return found;
}

void CacheGroup::remember_part(int32_t block, const BlockHash& parent,
                               std::span<const TokenId> tokens) {
  HEADRACE_CHECK_GT(pool_.references(block), 0);
  prefixes_.insert_part(block, parent, tokens);
}

void CacheGroup::forget(int32_t block) {
  if (!prefixes_.contains(block)) return;
  if (pool_.references(block) == 0) --num_cached_;
  if (log_ != nullptr && !prefixes_.is_part(block)) {
    log_->removed(number_, prefixes_.hash(block), prefixes_.parent(block));
  }
  prefixes_.erase(block);
}

void CacheGroup::forget_all() {
  for (int32_t block = 0; block < pool_.num_blocks(); ++block) prefixes_.erase(block);
  num_cached_ = 0;
}

void CacheGroup::check_invariants() const {
  pool_.check_invariants();
  prefixes_.check_invariants();
  int32_t num_cached = 0;
  for (int32_t block = 0; block < pool_.num_blocks(); ++block) {
    num_cached += pool_.references(block) == 0 && prefixes_.contains(block) ? 1 : 0;
    // What a part holds grows when it is written: its holder must have made it unknown.
    if (prefixes_.is_part(block)) HEADRACE_CHECK_EQ(pool_.references(block), 0);
  }
  HEADRACE_CHECK_EQ(num_cached, num_cached_);
}

}  // namespace headrace
