// What an engine tells of its prefix cache. Part of the public C++ API.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/token.h"

namespace headrace {

/// A change of what the prefix cache holds, for routers that send requests where their prefix is.
struct KvEvent {
  enum class Kind : uint8_t {
    stored,   ///< a block can be found from now on
    removed,  ///< it cannot any more
    cleared,  ///< all are gone; or events were lost, and what is known of the cache is void
  };
  using Hash = std::array<uint8_t, 16>;

  Kind kind = Kind::stored;
  /// Counts events, those lost included: each has a larger one than the one before it, and one
  /// larger by 1 unless it is `cleared`.
  uint64_t number = 0;
  int32_t group = 0;            ///< the cache group
  Hash hash{};                  ///< of this block's tokens and all before them, in its scope
  Hash parent{};                ///< of the block before it
  std::vector<TokenId> tokens;  ///< of a stored block
};

}  // namespace headrace
