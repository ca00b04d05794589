// See block_table.h.
#include "kv/block_table.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace headrace {

BlockTable::BlockTable(CacheGroup& group, int64_t max_tokens) : group_(&group) {
  blocks_.reserve(static_cast<size_t>(ceil_div(max_tokens, group.geometry().block_tokens)));
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)),
      blocks_(std::move(other.blocks_)),
      num_released_(std::exchange(other.num_released_, 0)) {
  other.blocks_.clear();
}

BlockTable::~BlockTable() {
  if (group_ == nullptr) return;
  try {
    clear();
  } catch (const std::exception&) {
    // The group's own check finds it.
  }
}

int64_t BlockTable::num_missing(int64_t num_tokens) const {
  const int64_t needed = ceil_div(num_tokens, group_->geometry().block_tokens);
  return std::max<int64_t>(0, needed - static_cast<int64_t>(blocks_.size()));
}

bool BlockTable::grow(int64_t num_tokens) {
  const int64_t missing = num_missing(num_tokens);
  if (missing > group_->pool().num_unreferenced()) return false;
  HEADRACE_CHECK_LE(blocks_.size() + static_cast<size_t>(missing), blocks_.capacity());
  for (int64_t i = 0; i < missing; ++i) blocks_.push_back(group_->allocate().value());
  return true;
}

void BlockTable::append_shared(int32_t block) {
  HEADRACE_CHECK_LT(blocks_.size(), blocks_.capacity());
  group_->retain(block);
  blocks_.push_back(block);
}

void BlockTable::append_released() {
  HEADRACE_CHECK_LT(blocks_.size(), blocks_.capacity());
  HEADRACE_CHECK_EQ(num_held(), 0);
  blocks_.push_back(kReleasedBlock);
  ++num_released_;
}

void BlockTable::replace(size_t index, int32_t block) {
  HEADRACE_CHECK(index < blocks_.size() && blocks_[index] != kReleasedBlock);
  group_->retain(block);
  group_->release(std::exchange(blocks_[index], block));
}

void BlockTable::reclaim(int64_t next_position) {
  const int64_t first_read = std::min(group_->geometry().first_block_read(next_position),
                                      static_cast<int64_t>(blocks_.size()));
  for (; num_released_ < first_read; ++num_released_) {
    int32_t& entry = blocks_[static_cast<size_t>(num_released_)];
    group_->release(std::exchange(entry, kReleasedBlock));
  }
}

void BlockTable::clear() {
  while (num_held() > 0) {
    group_->release(blocks_.back());
    blocks_.pop_back();
  }
  blocks_.clear();
  num_released_ = 0;
}

void BlockTable::abandon() noexcept {
  blocks_.clear();
  num_released_ = 0;
}

void BlockTable::check_invariants() const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (i < static_cast<size_t>(num_released_)) {
      HEADRACE_CHECK_EQ(blocks_[i], kReleasedBlock);
    } else {
      HEADRACE_CHECK_GT(group_->pool().references(blocks_[i]), 0);
    }
  }
}

}  // namespace headrace
