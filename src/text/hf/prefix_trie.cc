// Builds the trie of prefix_trie.h, level by level. Free places are asked in turn; a place that did
// not fit often is not asked again.
#include "text/hf/prefix_trie.h"

#include <algorithm>

namespace headrace::text {

PrefixTrie::PrefixTrie(const std::vector<std::pair<std::string_view, int32_t>>& entries) {
  struct Pending {
    uint32_t node;
    size_t first, last, depth;
  };
  units_.resize(512);
  units_[0].parent = 0;
  size_t first_free = 1;
  std::vector<Pending> queue{{0, 0, entries.size(), 0}};
  std::vector<std::pair<unsigned char, size_t>> children;  // byte, where its entries begin
  for (size_t next = 0; next < queue.size(); ++next) {
    const Pending now = queue[next];
    size_t i = now.first;
    if (i < now.last && entries[i].first.size() == now.depth) {
      units_[now.node].value = entries[i].second;
      ++i;
    }
    children.clear();
    for (; i < now.last; ++i) {
      const auto byte = static_cast<unsigned char>(entries[i].first[now.depth]);
      if (children.empty() || children.back().first != byte) children.emplace_back(byte, i);
    }
    // A base of zero children leads to nobody: no unit has this node as its parent.
    if (children.empty()) continue;
    uint32_t base = 0;
    size_t tries = 0;
    for (size_t at = first_free;; ++at) {
      if (at + 256 >= units_.size()) units_.resize(units_.size() * 2);
      if (units_[at].parent != kFree) {
        if (at == first_free) ++first_free;
        continue;
      }
      base = static_cast<uint32_t>(at) ^ children.front().first;
      if ((base | 255U) >= units_.size()) units_.resize(units_.size() * 2);
      const bool fits = std::all_of(children.begin(), children.end(), [&](const auto& child) {
        const uint32_t place = base ^ child.first;
        return place != 0 && units_[place].parent == kFree;
      });
      if (fits) break;
      if (++tries > 64 && at == first_free) ++first_free;
    }
    units_[now.node].base = base;
    for (size_t k = 0; k < children.size(); ++k) {
      const uint32_t place = base ^ children[k].first;
      units_[place].parent = now.node;
      const size_t last = k + 1 < children.size() ? children[k + 1].second : now.last;
      queue.push_back({place, children[k].second, last, now.depth + 1});
    }
  }
}

}  // namespace headrace::text
