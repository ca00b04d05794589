// See tokenizer_check.h.
#include "app/tokenizer_check.h"

#include "text/tokenizer_texts.h"

namespace headrace {

TokenizerComparison compare_tokenizers(const Tokenizer& a, std::string_view what_a,
                                       const Tokenizer& b, std::string_view what_b) {
  TokenizerComparison made;
  const auto checked = check_same_tokenizer(a, what_a, b, what_b);
  made.same_rules = checked.ok();
  if (!checked.ok()) made.rules = checked.error().message;
  for (const std::string& text : tokenizer_texts()) {
    ++made.num_texts;
    const auto in_a = a.encode(text, EncodeOptions{true, false});
    const auto in_b = b.encode(text, EncodeOptions{true, false});
    if (in_a.ok() && in_b.ok() && *in_a == *in_b) continue;
    if (!in_a.ok() && !in_b.ok()) continue;
    TokenizerDifference difference;
    difference.text = text;
    if (in_a.ok()) difference.a = *in_a;
    if (in_b.ok()) difference.b = *in_b;
    if (!in_a.ok()) difference.error_a = in_a.error().to_string();
    if (!in_b.ok()) difference.error_b = in_b.error().to_string();
    made.difference = std::move(difference);
    break;
  }
  return made;
}

}  // namespace headrace
