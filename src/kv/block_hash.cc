// See block_hash.h.
#include "kv/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "base/check.h"

namespace headrace {
namespace {

BlockHash hash_of(const void* data, size_t size, const BlockHasher::Key& key) {
  static_assert(sizeof(BlockHasher::Key) >= XXH3_SECRET_SIZE_MIN);
  const XXH128_hash_t hash = XXH3_128bits_withSecret(data, size, key.data(), sizeof(key));
  return {hash.low64, hash.high64};
}

}  // namespace

BlockHash BlockHasher::root(std::string_view fingerprint, std::string_view scope) const {
  // Each text is hashed by itself, so that no end of one can pass for the beginning of the other.
  const BlockHash texts[] = {hash_of(fingerprint.data(), fingerprint.size(), key_),
                             hash_of(scope.data(), scope.size(), key_)};
  return hash_of(texts, sizeof(texts), key_);
}

BlockHash BlockHasher::next(const BlockHash& parent, std::span<const TokenId> tokens) const {
  HEADRACE_CHECK_LE(tokens.size(), kMaxBlockTokens);
  std::array<std::byte, sizeof(BlockHash) + kMaxBlockTokens * sizeof(TokenId)> input;
  std::memcpy(input.data(), &parent, sizeof(parent));
  std::memcpy(input.data() + sizeof(parent), tokens.data(), tokens.size_bytes());
  return hash_of(input.data(), sizeof(parent) + tokens.size_bytes(), key_);
}

}  // namespace headrace
