// A cache group: layers that cache alike share one pool of blocks and one table a sequence. Owns
// the pool and the count of blocks that admitted sequences may still take. Block ids only.
#pragma once

#include <cstdint>

#include "kv/block_pool.h"

namespace headrace {

/// What decides which blocks a sequence needs.
struct CacheGeometry {
  int64_t block_tokens = 16;
  int64_t window = 0;  ///< 0: none; else a key `window` or more positions back is never read

  bool operator==(const CacheGeometry&) const = default;
};

/// The most blocks that a sequence of up to `max_tokens` tokens holds at once, if no step has more
/// than `max_step_tokens` of its tokens.
int64_t max_blocks_held(const CacheGeometry& geometry, int64_t max_tokens, int64_t max_step_tokens);

/// A sequence is admitted with its largest need reserved, so that it can always go on: blocks are
/// taken from the pool as it grows, and a reserved block is never missing.
class CacheGroup {
 public:
  CacheGroup(const CacheGeometry& geometry, int32_t num_blocks)
      : geometry_(geometry), pool_(num_blocks) {}

  const CacheGeometry& geometry() const { return geometry_; }
  BlockPool& pool() { return pool_; }
  const BlockPool& pool() const { return pool_; }

  int64_t num_reserved() const { return num_reserved_; }
  bool can_reserve(int64_t num_blocks) const {
    return num_blocks <= pool_.num_blocks() - num_reserved_;
  }
  void reserve(int64_t num_blocks);
  void unreserve(int64_t num_blocks);

  /// Throws InternalError if the pool is unsound or more blocks are held than reserved.
  void check_invariants() const;

 private:
  CacheGeometry geometry_;
  BlockPool pool_;
  int64_t num_reserved_ = 0;
};

}  // namespace headrace
