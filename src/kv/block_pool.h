// The blocks of one cache group: who may write which. Owns reference counts and the order of reuse.
// Block ids only: must not know models, tensors or requests.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace headrace {

/// A fixed set of blocks [0, num_blocks). A block is held (one reference or more) or unreferenced.
/// Unreferenced blocks wait in a queue, and the first is handed out next: in the order in which
/// they were let go, so that what a block still holds survives as long as possible, but for those
/// that hold nothing of worth, which go to the front.
class BlockPool {
 public:
  explicit BlockPool(int32_t num_blocks);

  int32_t num_blocks() const { return static_cast<int32_t>(references_.size()); }
  int32_t num_unreferenced() const { return num_unreferenced_; }
  int32_t references(int32_t block) const;

  /// Hands out the first of the queue, with one reference; nothing if all are held.
  std::optional<int32_t> allocate();
  /// One more reference. A block that had none leaves the queue and keeps its content.
  void retain(int32_t block);
  /// One reference less. A block that had one goes to the end of the queue, or, where its content
  /// is of no use, to the front.
  void release(int32_t block, bool is_useful = true);

  /// All blocks are unreferenced, as at the start, whatever was wrong.
  void reset() noexcept;

  /// Throws InternalError unless held and unreferenced blocks partition the pool and the queue is
  /// sound. Linear in num_blocks.
  void check_invariants() const;

 private:
  void unlink(int32_t block);
  void link_before(int32_t block, int32_t next);

  // The queue of unreferenced blocks is a ring through node num_blocks: next_ of that node is the
  // block to hand out next. Held blocks are linked to themselves.
  std::vector<int32_t> references_;
  std::vector<int32_t> next_;
  std::vector<int32_t> previous_;
  int32_t num_unreferenced_ = 0;
};

}  // namespace headrace
