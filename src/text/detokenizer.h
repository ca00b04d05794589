// Token ids to text as they come, never half a character. Owns the held-back bytes.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace headrace {

/// Joining what push() and finish() return equals Tokenizer::decode of the same ids, with every
/// invalid byte sequence replaced by U+FFFD. An incomplete UTF-8 tail is held back until the next
/// token completes or contradicts it; finish() gives it out as U+FFFD.
class Detokenizer {
 public:
  /// With `goes_on` the ids follow others, whose text is already there: the rule for the beginning
  /// of a text (SentencePiece drops its first space) does not apply.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special, bool goes_on = false);

  /// The text that became certain with this token; may be empty.
  std::string push(TokenId id);
  /// What is still held back.
  std::string finish();
  /// Whether bytes of an incomplete character are held back.
  bool holds_back() const { return !pending_.empty(); }

 private:
  std::string take_complete(bool at_end);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<TokenStream> stream_;
  std::string pending_;
};

}  // namespace headrace
