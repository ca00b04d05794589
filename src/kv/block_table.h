// One sequence's blocks in one cache group: which block holds which positions. Owns its references.
// Block ids only: must not know models, tensors or requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/cache_group.h"

namespace headrace {

/// Entry i of the table is the block of positions [i * block_tokens, (i + 1) * block_tokens), or
/// kReleasedBlock once all of them slid out of the window.
class BlockTable {
 public:
  /// Equal to kNoBlock of backend/kv_view.h, which reads the table.
  static constexpr int32_t kReleasedBlock = -1;

  /// For up to `max_tokens` tokens; no memory is asked for later. `group` must outlive the table.
  /// Throws std::bad_alloc.
  BlockTable(CacheGroup& group, int64_t max_tokens);
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&&) = delete;
  /// Gives back what it has, as far as the group's books allow: clear() first tells what is wrong
  /// with them.
  ~BlockTable();

  /// Blocks that grow() would take.
  int64_t num_missing(int64_t num_tokens) const;
  /// Takes blocks for the tokens [0, num_tokens). False, and nothing taken, where the group has not
  /// enough.
  bool grow(int64_t num_tokens);
  /// One more entry: a block of others, which gets a reference more.
  void append_shared(int32_t block);
  /// One more entry, that nothing reads any more; only before any other kind.
  void append_released();
  /// Another block of the same content instead of the one that entry `index` has.
  void replace(size_t index, int32_t block);
  /// Gives back the blocks that no query at `next_position` or later can read.
  void reclaim(int64_t next_position);
  /// Gives all blocks back, the last first, so that the end of a prefix is forgotten before its
  /// beginning.
  void clear();
  /// Knows of no block any more and gives none back: for a group that is to be reset.
  void abandon() noexcept;

  std::span<const int32_t> blocks() const { return blocks_; }
  int64_t num_held() const { return static_cast<int64_t>(blocks_.size()) - num_released_; }
  int64_t num_released() const { return num_released_; }

  /// Throws InternalError unless released entries come first and all others are held.
  void check_invariants() const;

 private:
  CacheGroup* group_;
  std::vector<int32_t> blocks_;
  int64_t num_released_ = 0;  // entries at the front that are kReleasedBlock
};

}  // namespace headrace
