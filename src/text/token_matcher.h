// Finds tokens that are matched in text as a whole: control and user-defined ones, and the unknown
// token, which counts as a control token here. Owns tries of their spellings. Must not know how the
// text between them is cut.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "headrace/result.h"
#include "text/vocabulary.h"

namespace headrace::text {

class TokenMatcher {
 public:
  /// A spelling longer than this is refused, so that matching stays linear whatever the file says.
  static constexpr size_t kMaxSpelling = 1024;

  /// Error (unsupported): a spelling over kMaxSpelling; `key` names the list.
  static Result<TokenMatcher> make(const Vocabulary& vocabulary, std::string_view key);

  /// A stretch [begin, end) of a text in which control tokens count.
  struct Trusted {
    size_t begin, end;
  };

  /// Takes `text` apart, in order: `on_token` for each token found, `on_text` for what lies between
  /// them, which is never empty. Of tokens that begin at one place the longest counts, and tokens
  /// do not overlap; white space that one takes beside it is left out. A token that a rule refuses
  /// is text, and no other is looked for inside it. Control tokens must lie in one of `trusted`,
  /// which are sorted and do not touch each other. Late tokens are looked for in the text between
  /// the others, each piece for itself.
  void split(std::string_view text, std::span<const Trusted> trusted,
             FunctionRef<void(std::string_view)> on_text,
             FunctionRef<void(TokenId)> on_token) const;

  /// The same in two parts, for text that is brought to normal form between them. First all but
  /// the late tokens: `on_text` gets begin and end of what lies between, and whether control
  /// tokens count in all of it. Where they count in a part of it, late control tokens are found
  /// here, as the file spells them.
  void split_early(std::string_view text, std::span<const Trusted> trusted,
                   FunctionRef<void(size_t, size_t, bool)> on_text,
                   FunctionRef<void(TokenId)> on_token) const;
  /// Then the late ones, in the normal form of such a piece.
  void split_late(std::string_view text, bool trusted, FunctionRef<void(std::string_view)> on_text,
                  FunctionRef<void(TokenId)> on_token) const;

 private:
  // Children of a node lie side by side, sorted by their byte.
  struct Node {
    uint32_t first_child = 0;
    uint16_t num_children = 0;
    uint8_t byte = 0;
    bool always = false;  ///< `id` is matched in untrusted text too
    TokenId id = -1;
  };
  struct Entry {
    std::string_view text;
    TokenId id;
  };
  struct Trie {
    std::vector<Node> nodes;
    std::array<bool, 256> is_first{};
  };
  struct Found {
    TokenId id = -1;
    size_t end = 0;
  };
  class TrustedCursor;

  static Trie make_trie(std::vector<Entry> entries, const Vocabulary& vocabulary);
  static Found longest(const Trie& trie, std::string_view text, size_t at, size_t trusted_end);
  const AddedRule* rule_of(TokenId id) const;
  // `piece` begins at `offset` of the whole text.
  void split_piece(const Trie& trie, TrustedCursor& trusted, std::string_view piece, size_t offset,
                   FunctionRef<void(size_t, size_t)> on_text,
                   FunctionRef<void(TokenId)> on_token) const;

  Trie first_;
  Trie late_;
  Trie late_control_;             // of late_ the control tokens, as the file spells them
  std::vector<AddedRule> rules_;  // sorted by id
};

}  // namespace headrace::text
