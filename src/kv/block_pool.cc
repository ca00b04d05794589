// See block_pool.h.
#include "kv/block_pool.h"

#include "base/check.h"

namespace headrace {

BlockPool::BlockPool(int32_t num_blocks) {
  HEADRACE_CHECK_GE(num_blocks, 0);
  const auto size = static_cast<size_t>(num_blocks);
  references_.assign(size, 0);
  next_.resize(size + 1);
  previous_.resize(size + 1);
  reset();
}

void BlockPool::reset() noexcept {
  num_unreferenced_ = 0;
  references_.assign(references_.size(), 0);
  next_.back() = previous_.back() = num_blocks();
  for (int32_t block = 0; block < num_blocks(); ++block) link_before(block, num_blocks());
}

int32_t BlockPool::references(int32_t block) const {
  HEADRACE_CHECK(block >= 0 && block < num_blocks());
  return references_[static_cast<size_t>(block)];
}

std::optional<int32_t> BlockPool::allocate() {
  if (num_unreferenced_ == 0) return std::nullopt;
  const int32_t block = next_.back();
  unlink(block);
  references_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::retain(int32_t block) {
  if (references(block) == 0) unlink(block);
  ++references_[static_cast<size_t>(block)];
}

void BlockPool::release(int32_t block, bool is_useful) {
  HEADRACE_CHECK_GT(references(block), 0);
  if (--references_[static_cast<size_t>(block)] > 0) return;
  link_before(block, is_useful ? num_blocks() : next_.back());
}

void BlockPool::unlink(int32_t block) {
  const auto at = static_cast<size_t>(block);
  next_[static_cast<size_t>(previous_[at])] = next_[at];
  previous_[static_cast<size_t>(next_[at])] = previous_[at];
  next_[at] = previous_[at] = block;
  --num_unreferenced_;
}

void BlockPool::link_before(int32_t block, int32_t next) {
  const auto at = static_cast<size_t>(block);
  const int32_t previous = previous_[static_cast<size_t>(next)];
  next_[at] = next;
  previous_[at] = previous;
  next_[static_cast<size_t>(previous)] = block;
  previous_[static_cast<size_t>(next)] = block;
  ++num_unreferenced_;
}

void BlockPool::check_invariants() const {
  const int32_t end = num_blocks();
  int32_t num_queued = 0;
  for (int32_t block = next_.back(); block != end; block = next_[static_cast<size_t>(block)]) {
    HEADRACE_CHECK_EQ(references(block), 0);
    const int32_t after = next_[static_cast<size_t>(block)];
    HEADRACE_CHECK_EQ(previous_[static_cast<size_t>(after)], block);
    ++num_queued;
    HEADRACE_CHECK_LE(num_queued, end);
  }
  HEADRACE_CHECK_EQ(num_queued, num_unreferenced_);
  int32_t num_held = 0;
  for (int32_t block = 0; block < end; ++block) {
    HEADRACE_CHECK_GE(references(block), 0);
    if (references(block) > 0) ++num_held;
  }
  HEADRACE_CHECK_EQ(num_held + num_queued, end);
}

}  // namespace headrace
