// The name of a block's content: a keyed 128-bit hash of its tokens and all before them, chained
// from block to block. Must not know who holds the block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/token.h"

namespace headrace {

struct BlockHash {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const BlockHash&) const = default;
};

/// XXH3 (xxHash 0.8) with a secret: who does not know the key cannot aim at another's hash. A hash
/// is where to look; what is found is compared token by token.
class BlockHasher {
 public:
  static constexpr size_t kKeyWords = 24;
  using Key = std::array<uint64_t, kKeyWords>;

  explicit BlockHasher(const Key& key) : key_(key) {}

  /// Where a chain begins: nothing of one scope or fingerprint is found from another.
  BlockHash root(std::string_view fingerprint, std::string_view scope) const;
  /// Of the block after `parent`. At most kMaxBlockTokens tokens.
  BlockHash next(const BlockHash& parent, std::span<const TokenId> tokens) const;

 private:
  Key key_;
};

inline constexpr size_t kMaxBlockTokens = 1024;

}  // namespace headrace
