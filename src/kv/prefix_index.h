// Which blocks of a cache group hold which tokens, so that a prompt finds what was computed before.
// Owns a note of each block's content, in memory of fixed size. Block ids only: must not know who
// holds a block, models or requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/token.h"
#include "kv/block_hash.h"

namespace headrace {

/// A full block is found by the hash of all tokens up to its end. A part, the begun block behind
/// the last full one of a sequence that ended, is found by the hash of what is before it. Both are
/// compared token by token.
class PrefixIndex {
 public:
  PrefixIndex(int32_t num_blocks, int64_t block_tokens);

  /// The full block of these tokens after `parent`, or -1.
  int32_t find(const BlockHash& hash, const BlockHash& parent,
               std::span<const TokenId> tokens) const;

  struct Match {
    int32_t block = -1;
    int64_t num_tokens = 0;  ///< of its tokens, from the first on, are those looked for
  };
  /// Of the blocks after `parent`, full ones and parts, one of the newest with the most leading
  /// tokens in common; at least one, or none is found.
  Match find_beginning(const BlockHash& parent, std::span<const TokenId> tokens) const;

  /// Notes a full block. Where one of the same content is known, nothing changes. Returns the one
  /// that is found from now on.
  int32_t insert(int32_t block, const BlockHash& hash, const BlockHash& parent,
                 std::span<const TokenId> tokens);
  /// Notes a part of 1 to block_tokens - 1 tokens, unless a known block begins with all of them.
  /// Returns whether it did.
  bool insert_part(int32_t block, const BlockHash& parent, std::span<const TokenId> tokens);
  /// The block's content is no longer known. Nothing if it was not.
  void erase(int32_t block);
  /// Nothing is known any more, whatever was wrong.
  void reset() noexcept;

  bool contains(int32_t block) const { return size_of(block) > 0; }
  bool is_part(int32_t block) const { return size_of(block) > 0 && size_of(block) < block_tokens_; }
  std::span<const TokenId> tokens(int32_t block) const;
  const BlockHash& hash(int32_t block) const { return notes_[static_cast<size_t>(block)].hash; }
  const BlockHash& parent(int32_t block) const { return notes_[static_cast<size_t>(block)].parent; }
  int32_t num_entries() const { return num_entries_; }

  /// Throws InternalError unless every noted block is found where it should be. Linear.
  void check_invariants() const;

 private:
  /// What is in a block, and its neighbours in two lists: of blocks whose hashes share a bucket,
  /// and of blocks whose parents' hashes do, newest first.
  struct Note {
    BlockHash hash;
    BlockHash parent;
    int32_t num_tokens = 0;
    int32_t next_by_hash = -1;
    int32_t next_sibling = -1;
    int32_t previous_sibling = -1;
  };

  int64_t size_of(int32_t block) const { return notes_[static_cast<size_t>(block)].num_tokens; }
  size_t bucket(const BlockHash& hash) const { return static_cast<size_t>(hash.low) & mask_; }
  void note(int32_t block, const BlockHash& parent, std::span<const TokenId> tokens);

  const int64_t block_tokens_;
  size_t mask_ = 0;
  std::vector<Note> notes_;       // by block
  std::vector<TokenId> tokens_;   // by block
  std::vector<int32_t> by_hash_;  // first of the list, by bucket
  std::vector<int32_t> by_parent_;
  int32_t num_entries_ = 0;
};

}  // namespace headrace
