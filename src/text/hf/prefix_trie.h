// Finds all strings of a set that a text begins with: a double-array trie. Must not know tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::text {

class PrefixTrie {
 public:
  /// `entries`: sorted by text, without repeats; none is empty.
  explicit PrefixTrie(const std::vector<std::pair<std::string_view, int32_t>>& entries);

  /// Calls `found(size, value)` for each entry at the beginning of [p, end), the shortest first.
  template <class Found>
  void each_prefix(const char* p, const char* end, Found&& found) const {
    uint32_t node = 0;
    for (const char* at = p; at < end;) {
      const uint32_t next = units_[node].base ^ static_cast<unsigned char>(*at);
      if (next >= units_.size() || units_[next].parent != node) return;
      ++at;
      node = next;
      if (units_[node].value >= 0) found(static_cast<size_t>(at - p), units_[node].value);
    }
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Unit {
    uint32_t base = 0;
    uint32_t parent = kFree;
    int32_t value = -1;
  };
  std::vector<Unit> units_;
};

}  // namespace headrace::text
