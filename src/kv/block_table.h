// One sequence's blocks in one cache group: which block holds which positions. Owns its references
// and its reservation. Block ids only: must not know models, tensors or requests.
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

  /// Reserves what a sequence of up to `max_tokens` tokens needs in steps of up to
  /// `max_step_tokens`; group.can_reserve(max_blocks_held(...)) must hold. `group` must outlive the
  /// table.
  BlockTable(CacheGroup& group, int64_t max_tokens, int64_t max_step_tokens);
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&&) = delete;
  ~BlockTable();

  /// Takes blocks for the tokens [0, num_tokens).
  void grow(int64_t num_tokens);
  /// Gives back the blocks that no query at `next_position` or later can read.
  void reclaim(int64_t next_position);
  /// Gives all blocks back; the reservation stays.
  void clear();

  std::span<const int32_t> blocks() const { return blocks_; }
  int64_t num_held() const { return static_cast<int64_t>(blocks_.size()) - num_released_; }

  /// Throws InternalError unless released entries come first and all others are held.
  void check_invariants() const;

 private:
  CacheGroup* group_;
  int64_t num_reserved_;
  std::vector<int32_t> blocks_;
  int64_t num_released_ = 0;  // entries at the front that are kReleasedBlock
};

}  // namespace headrace
