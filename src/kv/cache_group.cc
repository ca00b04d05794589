// See cache_group.h.
#include "kv/cache_group.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace headrace {

int64_t max_blocks_held(const CacheGeometry& geometry, int64_t max_tokens,
                        int64_t max_step_tokens) {
  const int64_t all = ceil_div(max_tokens, geometry.block_tokens);
  if (geometry.window == 0) return all;
  // A step's rows and the window - 1 keys before the first of them, wherever the block borders lie:
  // n consecutive tokens touch at most (n - 2) / block_tokens + 2 blocks, rounded down.
  const int64_t span = geometry.window - 1 + max_step_tokens;
  return std::min(all, (std::max<int64_t>(span, 2) - 2) / geometry.block_tokens + 2);
}

void CacheGroup::reserve(int64_t num_blocks) {
  HEADRACE_CHECK(num_blocks >= 0 && can_reserve(num_blocks));
  num_reserved_ += num_blocks;
}

void CacheGroup::unreserve(int64_t num_blocks) {
  HEADRACE_CHECK_LE(num_blocks, num_reserved_);
  num_reserved_ -= num_blocks;
}

void CacheGroup::check_invariants() const {
  pool_.check_invariants();
  HEADRACE_CHECK_LE(num_reserved_, pool_.num_blocks());
  HEADRACE_CHECK_LE(pool_.num_blocks() - pool_.num_unreferenced(), num_reserved_);
}

}  // namespace headrace
