// A cache group: layers that cache alike share one pool of blocks and one table a sequence. Owns
// the pool and the note of what its blocks hold. Block ids only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/block_pool.h"
#include "kv/prefix_index.h"
#include "kv/prefix_log.h"

namespace headrace {

/// What decides which blocks a sequence needs.
struct CacheGeometry {
  int64_t block_tokens = 16;
  int64_t window = 0;  ///< 0: none; else a key `window` or more positions back is never read

  bool operator==(const CacheGeometry&) const = default;

  /// The first block that a query at `position` or later reads.
  int64_t first_block_read(int64_t position) const;
};

/// The most blocks that a sequence of up to `max_tokens` tokens holds at once, if no step has more
/// than `max_step_tokens` of its tokens.
int64_t max_blocks_held(const CacheGeometry& geometry, int64_t max_tokens, int64_t max_step_tokens);

/// A block is written only while one sequence alone holds it, and what is known of its content is
/// true of it at all times.
class CacheGroup {
 public:
  /// `log` (may be null) is told of every change of what is found, as group `number`.
  CacheGroup(const CacheGeometry& geometry, int32_t num_blocks, PrefixLog* log = nullptr,
             int32_t number = 0);

  const CacheGeometry& geometry() const { return geometry_; }
  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& prefixes() const { return prefixes_; }

  /// A block to write, with one reference: one that holds nothing, else the one whose prefix was of
  /// no use longest, which is forgotten. Nothing if all are held.
  std::optional<int32_t> allocate();
  void retain(int32_t block);
  /// One reference less. What holds a known prefix is kept as long as there are others.
  void release(int32_t block);

  /// The block, which is held, is full and was written: from now on it is found by its content.
  /// Returns the one that is found, which may be another of the same content.
  int32_t remember(int32_t block, const BlockHash& hash, const BlockHash& parent,
                   std::span<const TokenId> tokens);
  /// The same of a block that is not full, unless one that begins with these tokens is known.
  void remember_part(int32_t block, const BlockHash& parent, std::span<const TokenId> tokens);
  /// What is known of the block is void, or will be: it is about to be written.
  void forget(int32_t block);
  /// Forgets all.
  void forget_all();
  /// As at the start, whatever was wrong: no block is held or known. Tables that hold some must be
  /// abandoned first.
  void reset() noexcept;

  /// Blocks that nobody holds, with a known prefix in them.
  int32_t num_cached() const { return num_cached_; }
  /// Prefixes that were given up for want of other blocks.
  int64_t num_evictions() const { return num_evictions_; }

  /// Throws InternalError if pool or index is unsound.
  void check_invariants() const;

 private:
  CacheGeometry geometry_;
  BlockPool pool_;
  PrefixIndex prefixes_;
  PrefixLog* log_;
  int32_t number_;
  int32_t num_cached_ = 0;
  int64_t num_evictions_ = 0;
};

}  // namespace headrace
