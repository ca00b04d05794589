// Words met before in the same text and their tokens. Owns a table of fixed size; a newer word
// replaces an older one. Word and tokens lie in one cache line, since a table that points
// elsewhere spends its time waiting for memory.
#pragma once

#include <algorithm>
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
  /// `num_bytes`: of the text to come.
  explicit WordCache(size_t num_bytes)
      : slots_(std::bit_ceil(std::clamp<size_t>(num_bytes / 32, 64, size_t{1} << 15))) {}

  /// Appends the tokens of an equal word met before; otherwise calls `compute`, which appends
  /// them, and remembers them if they are few.
  template <class Compute>
  void append(std::string_view word, std::vector<TokenId>& out, Compute&& compute) {
    if (word.size() > kMaxWord) return compute();
    Slot& slot = slots_[hash_bytes(word.data(), word.size()) & (slots_.size() - 1)];
    if (slot.size == word.size() && std::memcmp(slot.word, word.data(), word.size()) == 0) {
      if (slot.count == 1) return out.push_back(slot.ids[0]);
      out.insert(out.end(), slot.ids, slot.ids + slot.count);
      return;
    }
    const size_t first = out.size();
    compute();
    const size_t count = out.size() - first;
    if (count == 0 || count > kMaxTokens) return;
    slot.size = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(count);
    std::memcpy(slot.word, word.data(), word.size());
    std::copy_n(out.data() + first, count, slot.ids);
  }

 private:
  static constexpr size_t kMaxWord = 30;
  static constexpr size_t kMaxTokens = 8;

  struct alignas(64) Slot {
    uint8_t size = 0;  // 0: empty
    uint8_t count = 0;
    char word[kMaxWord];
    TokenId ids[kMaxTokens];
  };
  static_assert(sizeof(Slot) == 64);
  std::vector<Slot> slots_;
};

}  // namespace headrace::text
