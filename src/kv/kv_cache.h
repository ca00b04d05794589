// The blocks of all cache groups, and what of a prompt is already in them. Owns pools, index and
// the key of its hashes. Block ids and token ids only: must not know models, tensors or requests.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "headrace/result.h"
#include "kv/block_hash.h"
#include "kv/block_table.h"
#include "kv/cache_group.h"
#include "kv/prefix_log.h"

namespace headrace {

/// What one sequence has in the cache.
struct CachedTokens {
  bool shares_prefixes = true;     ///< else it finds nothing, and leaves nothing to be found
  BlockHash root;                  ///< KvCache::root() of its scope
  std::vector<BlockHash> hashes;   ///< of its full blocks, as far as they were needed
  std::vector<BlockTable> tables;  ///< one a group; none before attach()
  int64_t num_remembered = 0;      ///< full blocks that were made known
};

/// The blocks of a prefix in one group: those with the indices first, first + 1, ...
struct PrefixBlocks {
  int64_t first = 0;
  std::vector<int32_t> blocks;
};

/// A prefix that somebody found in the cache.
struct FoundPrefix {
  int64_t num_tokens = 0;
  std::vector<PrefixBlocks> groups;
};

/// The content of block `from` is to be copied to block `to` before the next step, in one group.
struct BlockCopy {
  int32_t group = 0;
  int32_t from = 0;
  int32_t to = 0;
};

struct KvCacheOptions {
  bool finds_prefixes = true;
  bool keeps_events = false;
  std::string fingerprint;  ///< of what makes keys and values: model and tokenizer
  BlockHasher::Key key{};   ///< of the hashes; random, so that nobody can aim at a collision
};

class KvCache {
 public:
  /// `num_blocks`: one number a geometry. Throws std::bad_alloc.
  KvCache(std::span<const CacheGeometry> geometries, std::span<const int64_t> num_blocks,
          const KvCacheOptions& options);

  const std::deque<CacheGroup>& groups() const { return groups_; }
  int64_t block_tokens() const { return block_tokens_; }
  PrefixLog& log() { return log_; }
  BlockHash root(std::string_view scope) const { return hasher_.root(fingerprint_, scope); }

  /// Hashes of all full blocks of the first `num_tokens` tokens. Throws std::bad_alloc.
  void hash_blocks(CachedTokens& cached, std::span<const TokenId> tokens, int64_t num_tokens) const;
  /// How many of the first `limit` tokens are in full blocks of every group: a multiple of
  /// block_tokens. Throws std::bad_alloc.
  int64_t find_prefix(CachedTokens& cached, std::span<const TokenId> tokens, int64_t limit) const;
  /// Of the first `num_tokens` tokens, the blocks in group `i` that somebody holds now.
  int64_t num_shared(const CachedTokens& cached, std::span<const TokenId> tokens, size_t i,
                     int64_t num_tokens) const;

  /// Makes tables for up to `max_tokens` tokens and puts into them what is found of the first
  /// `limit` tokens, also the beginning of one more block, which is copied where others may need
  /// it. Returns the number of tokens. `copies` gets what must be copied; its blocks are held until
  /// end_copies(). Throws std::bad_alloc; then the sequence has nothing.
  int64_t attach(CachedTokens& cached, std::span<const TokenId> tokens, int64_t limit,
                 int64_t max_tokens, std::vector<BlockCopy>& copies);
  /// Gives `cached` the first `num_tokens` tokens of `leader`, which has computed them. False, and
  /// nothing done, where blocks are missing. Throws std::bad_alloc; then it has nothing.
  bool fork(const CachedTokens& leader, CachedTokens& cached, int64_t num_tokens,
            int64_t max_tokens, std::vector<BlockCopy>& copies);
  /// The copies have been made, or are not needed any more.
  void end_copies(std::vector<BlockCopy>& copies);
  /// The copies were not made: what is known of the blocks that they were for is void.
  void abandon_copies(std::vector<BlockCopy>& copies);

  /// Most tokens for which grow() would succeed.
  int64_t largest_growth(const CachedTokens& cached) const;
  /// Blocks for the first `num_tokens` tokens. False, and nothing taken, where they are missing.
  bool grow(CachedTokens& cached, int64_t num_tokens);
  /// The first `num_computed` tokens are in the blocks: full ones become known, and those behind
  /// the windows are given back.
  void advance(CachedTokens& cached, std::span<const TokenId> tokens, int64_t num_computed);
  /// Gives everything back. The begun block behind `num_computed` tokens becomes known too.
  void release(CachedTokens& cached, std::span<const TokenId> tokens, int64_t num_computed);
  /// Gives everything back; only what advance() has seen is known.
  void discard(CachedTokens& cached);

  // kv_cache_sessions.cc
  /// The longest prefix of `tokens` that attach() would find, the begun block behind it included.
  /// Of a window's blocks those that a next token reads, and up to as many before them as are
  /// there: a prompt that parts from these tokens earlier can then begin with them too. Valid until
  /// the cache changes. Throws std::bad_alloc.
  FoundPrefix locate(const BlockHash& root, std::span<const TokenId> tokens) const;
  /// Makes `tokens` a prefix that is found and that nobody holds. Where a block is not known
  /// already, `write(group, index, block)` is to fill in block `index` of the prefix; then `accept`
  /// is asked whether it may become known. `first`: in each group, the first block that can be
  /// written; at most first_block_read() of the full blocks' end. Blocks before those that a next
  /// token reads are only written where one is free that holds no other prefix. Returns false, and
  /// nothing has changed, where blocks are missing; with accept's error other prefixes may have
  /// been given up. Throws std::bad_alloc; then nothing has changed.
  Result<bool> restore(const BlockHash& root, std::span<const TokenId> tokens,
                       std::span<const int64_t> first,
                       FunctionRef<void(size_t group, int64_t index, int32_t block)> write,
                       FunctionRef<Result<void>()> accept);

  /// Forgets all prefixes; what is held stays held.
  void forget_prefixes();
  /// As at the start, whatever was wrong. Tables that hold blocks must be abandoned first.
  void reset() noexcept;
  /// Whether block `index` of one is what the other's is, or will be.
  static bool same_block(const CachedTokens& a, const CachedTokens& b, size_t index) {
    return index < a.hashes.size() && index < b.hashes.size() && a.hashes[index] == b.hashes[index];
  }

  /// Throws InternalError unless every group is sound.
  void check_invariants() const;

 private:
  std::span<const TokenId> block_of(std::span<const TokenId> tokens, int64_t index) const;
  const BlockHash& hash_before(const CachedTokens& cached, int64_t index) const;
  int32_t find(const CacheGroup& group, const CachedTokens& cached, std::span<const TokenId> tokens,
               int64_t index) const;
  int64_t find_beginning(const CachedTokens& cached, std::span<const TokenId> tokens, int64_t first,
                         int64_t limit) const;
  int64_t attach_beginning(CachedTokens& cached, std::span<const TokenId> tokens, int64_t first,
                           int64_t limit, std::vector<BlockCopy>& copies);

  const std::string fingerprint_;
  const bool finds_prefixes_;
  const int64_t block_tokens_;
  BlockHasher hasher_;
  PrefixLog log_;
  std::deque<CacheGroup> groups_;  // tables keep their addresses
};

}  // namespace headrace
