// See block_table.h.
#include "kv/block_table.h"

#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace headrace {

BlockTable::BlockTable(CacheGroup& group, int64_t max_tokens, int64_t max_step_tokens)
    : group_(&group),
      num_reserved_(max_blocks_held(group.geometry(), max_tokens, max_step_tokens)) {
  blocks_.reserve(static_cast<size_t>(ceil_div(max_tokens, group.geometry().block_tokens)));
  group.reserve(num_reserved_);
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)),
      num_reserved_(other.num_reserved_),
      blocks_(std::move(other.blocks_)),
      num_released_(std::exchange(other.num_released_, 0)) {
  other.blocks_.clear();
}

BlockTable::~BlockTable() {
  if (group_ == nullptr) return;
  clear();
  group_->unreserve(num_reserved_);
}

void BlockTable::grow(int64_t num_tokens) {
  const int64_t needed = ceil_div(num_tokens, group_->geometry().block_tokens);
  while (static_cast<int64_t>(blocks_.size()) < needed) {
    HEADRACE_CHECK_LT(num_held(), num_reserved_);
    const auto block = group_->pool().allocate();
    HEADRACE_CHECK(block.has_value());
    blocks_.push_back(*block);
  }
}

void BlockTable::reclaim(int64_t next_position) {
  const CacheGeometry& geometry = group_->geometry();
  if (geometry.window == 0) return;
  const int64_t first_needed = next_position - geometry.window + 1;
  while (num_released_ < static_cast<int64_t>(blocks_.size()) &&
         (num_released_ + 1) * geometry.block_tokens <= first_needed) {
    int32_t& entry = blocks_[static_cast<size_t>(num_released_)];
    group_->pool().release(std::exchange(entry, kReleasedBlock));
    ++num_released_;
  }
}

void BlockTable::clear() {
  for (size_t i = static_cast<size_t>(num_released_); i < blocks_.size(); ++i) {
    group_->pool().release(blocks_[i]);
  }
  blocks_.clear();
  num_released_ = 0;
}

void BlockTable::check_invariants() const {
  HEADRACE_CHECK_LE(num_held(), num_reserved_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (i < static_cast<size_t>(num_released_)) {
      HEADRACE_CHECK_EQ(blocks_[i], kReleasedBlock);
    } else {
      HEADRACE_CHECK_GT(group_->pool().references(blocks_[i]), 0);
    }
  }
}

}  // namespace headrace
