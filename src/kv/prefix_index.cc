// See prefix_index.h.
#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace headrace {
namespace {

/// A system prompt may have thousands of continuations: only so many are looked at.
constexpr int kMaxSiblings = 64;

}  // namespace

PrefixIndex::PrefixIndex(int32_t num_blocks, int64_t block_tokens) : block_tokens_(block_tokens) {
  const auto size = static_cast<size_t>(num_blocks);
  const size_t num_buckets = std::bit_ceil(2 * size + 1);
  mask_ = num_buckets - 1;
  notes_.resize(size);
  tokens_.resize(size * static_cast<size_t>(block_tokens));
  by_hash_.assign(num_buckets, -1);
  by_parent_.assign(num_buckets, -1);
}

void PrefixIndex::reset() noexcept {
  std::ranges::fill(notes_, Note{});
  std::ranges::fill(by_hash_, -1);
  std::ranges::fill(by_parent_, -1);
  num_entries_ = 0;
}

std::span<const TokenId> PrefixIndex::tokens(int32_t block) const {
  const auto first = static_cast<size_t>(block) * static_cast<size_t>(block_tokens_);
  return std::span(tokens_).subspan(first, static_cast<size_t>(size_of(block)));
}

int32_t PrefixIndex::find(const BlockHash& hash, const BlockHash& parent,
                          std::span<const TokenId> tokens_in) const {
  for (int32_t block = by_hash_[bucket(hash)]; block >= 0;) {
    const Note& note = notes_[static_cast<size_t>(block)];
    if (note.hash == hash && note.parent == parent &&
        std::ranges::equal(tokens(block), tokens_in)) {
      return block;
    }
    block = note.next_by_hash;
  }
  return -1;
}

PrefixIndex::Match PrefixIndex::find_beginning(const BlockHash& parent,
                                               std::span<const TokenId> tokens_in) const {
  Match best;
  int num_seen = 0;
  for (int32_t block = by_parent_[bucket(parent)]; block >= 0 && num_seen < kMaxSiblings;
       ++num_seen) {
    const Note& note = notes_[static_cast<size_t>(block)];
    if (note.parent == parent) {
      const auto has = tokens(block);
      const auto end = std::ranges::mismatch(has, tokens_in).in1;
      const auto common = static_cast<int64_t>(end - has.begin());
      if (common > best.num_tokens) best = {block, common};
    }
    block = note.next_sibling;
  }
  return best;
}

void PrefixIndex::note(int32_t block, const BlockHash& parent, std::span<const TokenId> tokens_in) {
  Note& note = notes_[static_cast<size_t>(block)];
  HEADRACE_CHECK_EQ(note.num_tokens, 0);
  note.parent = parent;
  note.num_tokens = static_cast<int32_t>(tokens_in.size());
  std::ranges::copy(tokens_in, tokens_.begin() + static_cast<int64_t>(block) * block_tokens_);
  int32_t& first = by_parent_[bucket(parent)];
  note.next_sibling = first;
  note.previous_sibling = -1;
  if (first >= 0) notes_[static_cast<size_t>(first)].previous_sibling = block;
  first = block;
  ++num_entries_;
}

int32_t PrefixIndex::insert(int32_t block, const BlockHash& hash, const BlockHash& parent,
                            std::span<const TokenId> tokens_in) {
  HEADRACE_CHECK_EQ(static_cast<int64_t>(tokens_in.size()), block_tokens_);
  if (const int32_t known = find(hash, parent, tokens_in); known >= 0) return known;
  note(block, parent, tokens_in);
  Note& note = notes_[static_cast<size_t>(block)];
  note.hash = hash;
  int32_t& first = by_hash_[bucket(hash)];
  note.next_by_hash = first;
  first = block;
  return block;
}

bool PrefixIndex::insert_part(int32_t block, const BlockHash& parent,
                              std::span<const TokenId> tokens_in) {
  HEADRACE_CHECK(!tokens_in.empty());
  HEADRACE_CHECK_LT(static_cast<int64_t>(tokens_in.size()), block_tokens_);
  const Match known = find_beginning(parent, tokens_in);
  if (known.num_tokens == static_cast<int64_t>(tokens_in.size())) return false;
  note(block, parent, tokens_in);
  return true;
}

void PrefixIndex::erase(int32_t block) {
  if (!contains(block)) return;
  Note& note = notes_[static_cast<size_t>(block)];
  if (note.num_tokens == block_tokens_) {
    int32_t* link = &by_hash_[bucket(note.hash)];
    while (*link != block) link = &notes_[static_cast<size_t>(*link)].next_by_hash;
    *link = note.next_by_hash;
  }
  if (note.previous_sibling >= 0) {
    notes_[static_cast<size_t>(note.previous_sibling)].next_sibling = note.next_sibling;
  } else {
    by_parent_[bucket(note.parent)] = note.next_sibling;
  }
  if (note.next_sibling >= 0) {
    notes_[static_cast<size_t>(note.next_sibling)].previous_sibling = note.previous_sibling;
  }
  note = {};
  --num_entries_;
}

void PrefixIndex::check_invariants() const {
  int32_t num_noted = 0;
  for (size_t i = 0; i < notes_.size(); ++i) {
    const auto block = static_cast<int32_t>(i);
    if (!contains(block)) continue;
    ++num_noted;
    const Note& note = notes_[i];
    HEADRACE_CHECK_LE(note.num_tokens, block_tokens_);
    if (!is_part(block)) HEADRACE_CHECK_EQ(find(note.hash, note.parent, tokens(block)), block);
    if (note.previous_sibling >= 0) {
      HEADRACE_CHECK_EQ(notes_[static_cast<size_t>(note.previous_sibling)].next_sibling, block);
    } else {
      HEADRACE_CHECK_EQ(by_parent_[bucket(note.parent)], block);
    }
  }
  HEADRACE_CHECK_EQ(num_noted, num_entries_);
}

}  // namespace headrace
