// See tokenizer_check.h.
#include "app/tokenizer_check.h"

#include <algorithm>
#include <set>

#include "text/tokenizer_texts.h"

namespace headrace {
namespace {

/// Nothing where the tokens are the same, or neither has any.
std::optional<TokenizerDifference> difference_on(const std::string& text, const Tokenizer& a,
                                                 const Tokenizer& b, bool parse_special) {
  const EncodeOptions options{.add_special = true, .parse_special = parse_special};
  const auto in_a = a.encode(text, options);
  const auto in_b = b.encode(text, options);
  if (in_a.ok() && in_b.ok() && *in_a == *in_b) return std::nullopt;
  if (!in_a.ok() && !in_b.ok()) return std::nullopt;
  TokenizerDifference difference;
  difference.text = text;
  if (in_a.ok()) difference.a = *in_a;
  if (in_b.ok()) difference.b = *in_b;
  if (!in_a.ok()) difference.error_a = in_a.error().to_string();
  if (!in_b.ok()) difference.error_b = in_b.error().to_string();
  return difference;
}

/// Tokens that templates write, of either tokenizer, each with white space and text on both sides:
/// some take the white space.
std::set<std::string> texts_with_special(const Tokenizer& a, const Tokenizer& b) {
  std::set<std::string> texts;
  for (const Tokenizer* tokenizer : {&a, &b}) {
    for (TokenId id = 0; id < tokenizer->vocab_size(); ++id) {
      const TokenKind kind = tokenizer->kind(id);
      if (kind != TokenKind::control && kind != TokenKind::unknown) continue;
      texts.insert("a \n" + std::string(tokenizer->piece(id)) + "\n b");
    }
  }
  return texts;
}

}  // namespace

TokenizerComparison compare_tokenizers(const Tokenizer& a, std::string_view what_a,
                                       const Tokenizer& b, std::string_view what_b) {
  TokenizerComparison made;
  const auto checked = check_same_tokenizer(a, what_a, b, what_b);
  made.same_rules = checked.ok();
  if (!checked.ok()) made.rules = checked.error().message;
  // No text at all, or white space, tells the least of where they differ: it comes last.
  std::vector<std::string> texts = tokenizer_texts();
  std::stable_partition(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find_first_not_of(" \t\r\n") != std::string::npos;
  });
  for (const std::string& text : texts) {
    ++made.num_texts;
    made.difference = difference_on(text, a, b, false);
    if (made.difference) return made;
  }
  for (const std::string& text : texts_with_special(a, b)) {
    ++made.num_texts;
    made.difference = difference_on(text, a, b, true);
    if (made.difference) return made;
  }
  return made;
}

}  // namespace headrace
