// See kv_cache.h. Here: prefixes that leave the cache and come back, for session files.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "kv/kv_cache.h"

namespace headrace {
namespace {

/// The blocks of a prefix in one group while it is being restored, each held once; -1: none yet.
/// Gives them back at the end, the last first, so that the end of a prefix is forgotten before its
/// beginning.
class HeldBlocks {
 public:
  /// For the indices [first, end), of which a next token reads those from `needed` on. Throws
  /// std::bad_alloc.
  HeldBlocks(CacheGroup& group, int64_t first, int64_t needed, int64_t end)
      : group_(&group),
        first_(first),
        needed_(needed),
        blocks_(static_cast<size_t>(end - first), -1) {
    new_ones_.reserve(blocks_.size());
  }
  HeldBlocks(HeldBlocks&& other) noexcept = default;
  HeldBlocks& operator=(HeldBlocks&&) = delete;
  ~HeldBlocks() {
    for (; !blocks_.empty(); blocks_.pop_back()) {
      if (blocks_.back() >= 0) group_->release(blocks_.back());
    }
  }

  CacheGroup& group() { return *group_; }
  int64_t first() const { return first_; }
  int64_t end() const { return first_ + static_cast<int64_t>(blocks_.size()); }
  int32_t block(int64_t index) const { return blocks_[static_cast<size_t>(index - first_)]; }
  /// Indices of blocks that are to be written.
  const std::vector<int64_t>& new_ones() const { return new_ones_; }

  void hold(int64_t index, int32_t known) {
    group_->retain(known);
    blocks_[static_cast<size_t>(index - first_)] = known;
  }
  bool can_take_missing() const {
    const auto begin = blocks_.begin() + (needed_ - first_);
    return std::count(begin, blocks_.end(), -1) <= group_->pool().num_unreferenced();
  }
  /// Blocks for all indices that are needed, and for those before them as long as there are any of
  /// no use to others.
  void take_missing() {
    for (int64_t index = needed_; index < end(); ++index) {
      if (block(index) < 0) take(index);
    }
    for (int64_t index = needed_; index-- > first_;) {
      if (block(index) >= 0) continue;
      if (group_->pool().num_unreferenced() <= group_->num_cached()) break;
      take(index);
    }
  }

 private:
  void take(int64_t index) {
    blocks_[static_cast<size_t>(index - first_)] = group_->allocate().value();
    new_ones_.push_back(index);
  }

  CacheGroup* group_;
  int64_t first_;
  int64_t needed_;
  std::vector<int32_t> blocks_;
  std::vector<int64_t> new_ones_;
};

}  // namespace

FoundPrefix KvCache::locate(const BlockHash& root, std::span<const TokenId> tokens) const {
  CachedTokens cached;
  cached.root = root;
  const auto limit = static_cast<int64_t>(tokens.size());
  const int64_t found = find_prefix(cached, tokens, limit);
  const int64_t rest = find_beginning(cached, tokens, found, limit);
  const int64_t num_full = found / block_tokens_;
  FoundPrefix out;
  out.num_tokens = found + rest;
  for (const CacheGroup& group : groups_) {
    int64_t first = group.geometry().first_block_read(found);
    const int64_t earliest = std::max<int64_t>(0, first - (num_full - first));
    while (first > earliest && find(group, cached, tokens, first - 1) >= 0) --first;
    PrefixBlocks& blocks = out.groups.emplace_back();
    blocks.first = first;
    for (int64_t index = first; index < num_full; ++index) {
      blocks.blocks.push_back(find(group, cached, tokens, index));
    }
    if (rest == 0) continue;
    const auto begun = tokens.subspan(static_cast<size_t>(found), static_cast<size_t>(rest));
    const auto match = group.prefixes().find_beginning(hash_before(cached, num_full), begun);
    blocks.blocks.push_back(match.block);
  }
  return out;
}

Result<bool> KvCache::restore(const BlockHash& root, std::span<const TokenId> tokens,
                              std::span<const int64_t> first,
                              FunctionRef<void(size_t, int64_t, int32_t)> write,
                              FunctionRef<Result<void>()> accept) {
  HEADRACE_CHECK(finds_prefixes_);
  HEADRACE_CHECK_EQ(first.size(), groups_.size());
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  const int64_t num_full = num_tokens / block_tokens_;
  const auto begun = tokens.subspan(static_cast<size_t>(num_full * block_tokens_));
  CachedTokens cached;
  cached.root = root;
  hash_blocks(cached, tokens, num_tokens);
  const auto find_known = [&](const CacheGroup& group, int64_t index) {
    if (index < num_full) return find(group, cached, tokens, index);
    const auto match = group.prefixes().find_beginning(hash_before(cached, num_full), begun);
    return match.num_tokens == static_cast<int64_t>(begun.size()) ? match.block : -1;
  };

  std::vector<HeldBlocks> held;
  held.reserve(groups_.size());
  for (size_t i = 0; i < groups_.size(); ++i) {
    const int64_t needed = groups_[i].geometry().first_block_read(num_full * block_tokens_);
    HEADRACE_CHECK(first[i] >= 0 && first[i] <= needed);
    held.emplace_back(groups_[i], first[i], needed, ceil_div(num_tokens, block_tokens_));
  }
  // What is known is held before anything is taken, which could be that.
  for (HeldBlocks& blocks : held) {
    for (int64_t index = blocks.first(); index < blocks.end(); ++index) {
      const int32_t known = find_known(blocks.group(), index);
      if (known >= 0) blocks.hold(index, known);
    }
    if (!blocks.can_take_missing()) return false;
  }
  for (HeldBlocks& blocks : held) blocks.take_missing();
  for (size_t i = 0; i < held.size(); ++i) {
    for (const int64_t index : held[i].new_ones()) write(i, index, held[i].block(index));
  }
  HEADRACE_TRY(accept());
  for (HeldBlocks& blocks : held) {
    for (const int64_t index : blocks.new_ones()) {
      const int32_t block = blocks.block(index);
      const BlockHash& parent = hash_before(cached, index);
      if (index == num_full) {
        blocks.group().remember_part(block, parent, begun);
      } else {
        blocks.group().remember(block, cached.hashes[static_cast<size_t>(index)], parent,
                                block_of(tokens, index));
      }
    }
  }
  return true;
}

}  // namespace headrace
