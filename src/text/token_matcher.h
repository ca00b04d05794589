// Finds tokens that are matched in text as a whole: control and user-defined ones. Owns a trie of
// their spellings. Must not know how the text between them is cut.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "text/vocabulary.h"

namespace headrace::text {

class TokenMatcher {
 public:
  /// A spelling longer than this is refused, so that matching stays linear whatever the file says.
  static constexpr size_t kMaxSpelling = 1024;

  /// Error (unsupported): a spelling over kMaxSpelling; `key` names the list.
  static Result<TokenMatcher> make(const Vocabulary& vocabulary, std::string_view key);

  struct Found {
    TokenId id = -1;   ///< -1: nothing in the rest of the text
    size_t begin = 0;  ///< where the text before it ends; white space that it takes is its own
    size_t end = 0;    ///< where the text after it begins
  };

  /// The first match at or after `from`; the longest where several begin there. Control tokens
  /// count only within [.., trusted_end(position)): `trusted_until` is asked for the end of
  /// the trusted stretch that holds a position (the position itself where it is not trusted).
  template <class TrustedUntil>
  Found find(std::string_view text, size_t from, TrustedUntil&& trusted_until) const {
    for (size_t at = from; at < text.size(); ++at) {
      if (!is_first_[static_cast<unsigned char>(text[at])]) continue;
      const Found found = match(text, from, at, trusted_until(at));
      if (found.id >= 0) return found;
    }
    return {};
  }

  bool empty() const { return nodes_.size() == 1; }

 private:
  // Children of a node lie side by side, sorted by their byte.
  struct Node {
    uint32_t first_child = 0;
    uint16_t num_children = 0;
    uint8_t byte = 0;
    bool always = false;  ///< `id` is matched in untrusted text too
    TokenId id = -1;
  };

  Found match(std::string_view text, size_t from, size_t at, size_t trusted_end) const;
  Found apply_rule(std::string_view text, size_t from, Found found) const;

  std::vector<Node> nodes_;
  std::array<bool, 256> is_first_{};
  std::vector<AddedRule> rules_;  // sorted by id
};

}  // namespace headrace::text
