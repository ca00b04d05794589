// See kv_cache.h.
#include "kv/kv_cache.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checked.h"

namespace headrace {

KvCache::KvCache(std::span<const CacheGeometry> geometries, std::span<const int64_t> num_blocks,
                 const KvCacheOptions& options)
    : fingerprint_(options.fingerprint),
      finds_prefixes_(options.finds_prefixes),
      block_tokens_(geometries.empty() ? 1 : geometries.front().block_tokens),
      hasher_(options.key) {
  HEADRACE_CHECK_EQ(geometries.size(), num_blocks.size());
  for (size_t i = 0; i < geometries.size(); ++i) {
    HEADRACE_CHECK_EQ(geometries[i].block_tokens, block_tokens_);
    groups_.emplace_back(geometries[i], static_cast<int32_t>(num_blocks[i]),
                         options.keeps_events ? &log_ : nullptr, static_cast<int32_t>(i));
  }
}

std::span<const TokenId> KvCache::block_of(std::span<const TokenId> tokens, int64_t index) const {
  return tokens.subspan(static_cast<size_t>(index * block_tokens_),
                        static_cast<size_t>(block_tokens_));
}

const BlockHash& KvCache::hash_before(const CachedTokens& cached, int64_t index) const {
  return index == 0 ? cached.root : cached.hashes[static_cast<size_t>(index - 1)];
}

int32_t KvCache::find(const CacheGroup& group, const CachedTokens& cached,
                      std::span<const TokenId> tokens, int64_t index) const {
  return group.prefixes().find(cached.hashes[static_cast<size_t>(index)],
                               hash_before(cached, index), block_of(tokens, index));
}

void KvCache::hash_blocks(CachedTokens& cached, std::span<const TokenId> tokens,
                          int64_t num_tokens) const {
  if (!cached.shares_prefixes || !finds_prefixes_) return;
  const int64_t num_blocks = num_tokens / block_tokens_;
  if (cached.hashes.empty()) cached.hashes.reserve(static_cast<size_t>(num_blocks));
  for (auto i = static_cast<int64_t>(cached.hashes.size()); i < num_blocks; ++i) {
    cached.hashes.push_back(hasher_.next(hash_before(cached, i), block_of(tokens, i)));
  }
}

int64_t KvCache::find_prefix(CachedTokens& cached, std::span<const TokenId> tokens,
                             int64_t limit) const {
  if (!cached.shares_prefixes || !finds_prefixes_) return 0;
  hash_blocks(cached, tokens, limit);
  int64_t num_blocks = limit / block_tokens_;
  for (const CacheGroup& group : groups_) {
    if (group.geometry().window > 0) continue;
    int64_t found = 0;
    while (found < num_blocks && find(group, cached, tokens, found) >= 0) ++found;
    num_blocks = found;
  }
  // A window needs only what is in it; where a block is missing, no longer prefix that needs it
  // will do.
  for (size_t i = 0; i < groups_.size();) {
    const CacheGeometry& geometry = groups_[i].geometry();
    ++i;
    if (geometry.window == 0) continue;
    const int64_t first = geometry.first_block_read(num_blocks * block_tokens_);
    for (int64_t index = num_blocks - 1; index >= first; --index) {
      if (find(groups_[i - 1], cached, tokens, index) >= 0) continue;
      num_blocks = index;
      i = 0;  // the other windows lie elsewhere now
      break;
    }
  }
  return num_blocks * block_tokens_;
}

int64_t KvCache::num_shared(const CachedTokens& cached, std::span<const TokenId> tokens, size_t i,
                            int64_t num_tokens) const {
  const CacheGroup& group = groups_[i];
  int64_t shared = 0;
  for (int64_t index = group.geometry().first_block_read(num_tokens);
       index < num_tokens / block_tokens_; ++index) {
    const int32_t block = find(group, cached, tokens, index);
    if (block >= 0 && group.pool().references(block) > 0) ++shared;
  }
  return shared;
}

int64_t KvCache::attach(CachedTokens& cached, std::span<const TokenId> tokens, int64_t limit,
                        int64_t max_tokens, std::vector<BlockCopy>& copies) {
  HEADRACE_CHECK(cached.tables.empty());
  const int64_t found = find_prefix(cached, tokens, limit);
  copies.reserve(copies.size() + groups_.size());
  try {
    cached.tables.reserve(groups_.size());
    for (CacheGroup& group : groups_) cached.tables.emplace_back(group, max_tokens);
  } catch (...) {
    cached.tables.clear();
    throw;
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    const int64_t first = groups_[i].geometry().first_block_read(found);
    for (int64_t index = 0; index < found / block_tokens_; ++index) {
      if (index < first) {
        cached.tables[i].append_released();
      } else {
        cached.tables[i].append_shared(find(groups_[i], cached, tokens, index));
      }
    }
  }
  cached.num_remembered = found / block_tokens_;
  return found + attach_beginning(cached, tokens, found, limit, copies);
}

// How many of the tokens from `first` on, where a block begins, are the beginning of one in every
// group: of another sequence that went on differently, or the last one of a sequence that ended.
int64_t KvCache::find_beginning(const CachedTokens& cached, std::span<const TokenId> tokens,
                                int64_t first, int64_t limit) const {
  if (!cached.shares_prefixes || !finds_prefixes_) return 0;
  int64_t common = std::min(limit - first, block_tokens_);
  const BlockHash& parent = hash_before(cached, first / block_tokens_);
  for (const CacheGroup& group : groups_) {
    if (common <= 0) return 0;
    const auto wanted = tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(common));
    common = group.prefixes().find_beginning(parent, wanted).num_tokens;
  }
  return common;
}

// The beginning of one more block.
int64_t KvCache::attach_beginning(CachedTokens& cached, std::span<const TokenId> tokens,
                                  int64_t first, int64_t limit, std::vector<BlockCopy>& copies) {
  for (const CacheGroup& group : groups_) {
    if (group.pool().num_unreferenced() < 2) return 0;
  }
  const int64_t common = find_beginning(cached, tokens, first, limit);
  if (common <= 0) return 0;
  const BlockHash& parent = hash_before(cached, first / block_tokens_);
  const auto wanted = tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(common));
  for (size_t i = 0; i < groups_.size(); ++i) {
    CacheGroup& group = groups_[i];
    const int32_t block = group.prefixes().find_beginning(parent, wanted).block;
    const bool is_free = group.pool().references(block) == 0;
    if (is_free && static_cast<int64_t>(group.prefixes().tokens(block).size()) == common) {
      // All that it holds is wanted, and nobody else wants it: it is written on.
      cached.tables[i].append_shared(block);
      group.forget(block);
      continue;
    }
    group.retain(block);  // until it has been copied
    const bool grown = cached.tables[i].grow(first + common);
    HEADRACE_CHECK(grown);
    copies.push_back({static_cast<int32_t>(i), block, cached.tables[i].blocks().back()});
  }
  return common;
}

bool KvCache::fork(const CachedTokens& leader, CachedTokens& cached, int64_t num_tokens,
                   int64_t max_tokens, std::vector<BlockCopy>& copies) {
  HEADRACE_CHECK(cached.tables.empty());
  const bool has_part = num_tokens % block_tokens_ != 0;
  for (const CacheGroup& group : groups_) {
    if (has_part && group.pool().num_unreferenced() == 0) return false;
  }
  copies.reserve(copies.size() + groups_.size());
  try {
    cached.tables.reserve(groups_.size());
    for (CacheGroup& group : groups_) cached.tables.emplace_back(group, max_tokens);
    if (cached.hashes.size() < leader.hashes.size()) cached.hashes = leader.hashes;
  } catch (...) {
    cached.tables.clear();
    throw;
  }
  const auto num_full = static_cast<size_t>(num_tokens / block_tokens_);
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto blocks = leader.tables[i].blocks();
    BlockTable& table = cached.tables[i];
    for (size_t index = 0; index < num_full; ++index) {
      if (blocks[index] == BlockTable::kReleasedBlock) {
        table.append_released();
      } else {
        table.append_shared(blocks[index]);
      }
    }
    if (!has_part) continue;
    groups_[i].retain(blocks[num_full]);
    const bool grown = table.grow(num_tokens);
    HEADRACE_CHECK(grown);
    copies.push_back({static_cast<int32_t>(i), blocks[num_full], table.blocks().back()});
  }
  cached.num_remembered = std::min(leader.num_remembered, static_cast<int64_t>(num_full));
  return true;
}

void KvCache::end_copies(std::vector<BlockCopy>& copies) {
  for (const BlockCopy& copy : copies) groups_[static_cast<size_t>(copy.group)].release(copy.from);
  copies.clear();
}

void KvCache::abandon_copies(std::vector<BlockCopy>& copies) {
  for (const BlockCopy& copy : copies) groups_[static_cast<size_t>(copy.group)].forget(copy.to);
  end_copies(copies);
}

int64_t KvCache::largest_growth(const CachedTokens& cached) const {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const auto has = static_cast<int64_t>(cached.tables[i].blocks().size());
    most = std::min(most, (has + groups_[i].pool().num_unreferenced()) * block_tokens_);
  }
  return most;
}

bool KvCache::grow(CachedTokens& cached, int64_t num_tokens) {
  if (largest_growth(cached) < num_tokens) return false;
  for (BlockTable& table : cached.tables) {
    const bool grown = table.grow(num_tokens);
    HEADRACE_CHECK(grown);
  }
  return true;
}

void KvCache::advance(CachedTokens& cached, std::span<const TokenId> tokens, int64_t num_computed) {
  if (cached.shares_prefixes && finds_prefixes_) {
    hash_blocks(cached, tokens, num_computed);
    for (int64_t& index = cached.num_remembered; (index + 1) * block_tokens_ <= num_computed;
         ++index) {
      const auto at = static_cast<size_t>(index);
      for (size_t i = 0; i < groups_.size(); ++i) {
        const int32_t block = cached.tables[i].blocks()[at];
        if (block == BlockTable::kReleasedBlock) continue;
        const int32_t known = groups_[i].remember(
            block, cached.hashes[at], hash_before(cached, index), block_of(tokens, index));
        // Two computed the same at once: one block is enough.
        if (known != block) cached.tables[i].replace(at, known);
      }
    }
  }
  for (BlockTable& table : cached.tables) table.reclaim(num_computed);
}

void KvCache::release(CachedTokens& cached, std::span<const TokenId> tokens, int64_t num_computed) {
  const int64_t full = num_computed / block_tokens_;
  const int64_t rest = num_computed % block_tokens_;
  const bool is_known = cached.num_remembered == full && cached.shares_prefixes && finds_prefixes_;
  if (is_known && rest > 0) {
    const auto part =
        tokens.subspan(static_cast<size_t>(full * block_tokens_), static_cast<size_t>(rest));
    for (size_t i = 0; i < cached.tables.size(); ++i) {
      const auto blocks = cached.tables[i].blocks();
      const int32_t block = blocks[static_cast<size_t>(full)];
      // Where a copy of it is to be made, it is held until then.
      if (groups_[i].pool().references(block) > 1) continue;
      groups_[i].remember_part(block, hash_before(cached, full), part);
    }
  }
  discard(cached);
}

void KvCache::discard(CachedTokens& cached) {
  for (BlockTable& table : cached.tables) table.clear();  // its destructor would tell of no fault
  cached.tables.clear();
  cached.num_remembered = 0;
}

void KvCache::forget_prefixes() {
  for (CacheGroup& group : groups_) group.forget_all();
  log_.cleared();
}

void KvCache::reset() noexcept {
  for (CacheGroup& group : groups_) group.reset();
  log_.cleared();
}

void KvCache::check_invariants() const {
  for (const CacheGroup& group : groups_) group.check_invariants();
}

}  // namespace headrace
