// For the tests of this folder.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "headrace/token.h"

namespace headrace::test {

inline constexpr int64_t kBlockTokens = 4;

/// `first` and those after it.
inline std::vector<TokenId> counted(size_t count, TokenId first = 0) {
  std::vector<TokenId> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace headrace::test
