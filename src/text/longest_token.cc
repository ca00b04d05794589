// See text/longest_token.h.
#include "text/longest_token.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace headrace {
namespace {

/// What normalisers shorten: runs of spaces, marks that compose, letters of double width; and what
/// is in no vocabulary as a whole.
constexpr std::string_view kProbe =
    "a   b\t\t e\xcc\x81 \xe1\x84\x80\xe1\x85\xa1 \xef\xbc\xa1 \xf4\x8f\xbf\xbd.";

}  // namespace

int64_t longest_token_bytes(const Tokenizer& tokenizer) {
  const auto ids = tokenizer.encode(kProbe, {false, false});
  if (!ids.ok()) return 0;
  const std::string text = tokenizer.decode(*ids, false);
  const bool has_space = text.starts_with(' ');  // that the tokenizer put before it
  if (std::string_view(text).substr(has_space ? 1 : 0) != kProbe) return 0;
  int64_t longest = 0;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    longest = std::max(longest, static_cast<int64_t>(tokenizer.bytes(id).size()));
  }
  return longest;
}

}  // namespace headrace
