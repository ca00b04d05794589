// Words met before in the same text and where their tokens stand in the output. Owns a table of
// fixed size; a newer word replaces an older one. Points into the text and the output.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "headrace/token.h"
#include "text/string_table.h"

namespace headrace::text {

class WordCache {
 public:
  static constexpr size_t kMaxWord = 64;  ///< longer words rarely come again

  /// `num_bytes`: of the text to come.
  explicit WordCache(size_t num_bytes)
      : slots_(std::bit_ceil(std::clamp<size_t>(num_bytes / 16, 64, size_t{1} << 16))) {}

  /// Appends the tokens of an equal word met before; false if there is none. Then `compute` them,
  /// and call `remember`.
  bool append(std::string_view word, uint64_t hash, std::vector<TokenId>& out) const {
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.size != word.size() || std::memcmp(slot.word, word.data(), word.size()) != 0) {
      return false;
    }
    if (slot.count == 1) {
      out.push_back(out[slot.first]);
      return true;
    }
    const size_t at = out.size();
    out.resize(at + slot.count);
    std::copy_n(out.begin() + static_cast<ptrdiff_t>(slot.first), slot.count,
                out.begin() + static_cast<ptrdiff_t>(at));
    return true;
  }

  /// The tokens of `word` are out[first, out.size()). `word` and `out` must outlive the cache.
  void remember(std::string_view word, uint64_t hash, size_t first,
                const std::vector<TokenId>& out) {
    slots_[hash & (slots_.size() - 1)] = {word.data(), static_cast<uint32_t>(word.size()),
                                          static_cast<uint32_t>(out.size() - first), first};
  }

 private:
  struct Slot {
    const char* word = nullptr;
    uint32_t size = 0;
    uint32_t count = 0;
    size_t first = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace headrace::text
