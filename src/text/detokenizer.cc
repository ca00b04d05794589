// See detokenizer.h.
#include "text/detokenizer.h"

#include "text/unicode.h"

namespace headrace {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special,
                         bool goes_on)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special), at_start_(!goes_on) {}

std::string Detokenizer::push(TokenId id) {
  if (id < 0 || id >= tokenizer_->vocab_size()) return {};
  const TokenKind kind = tokenizer_->kind(id);
  const bool hidden = kind == TokenKind::control || kind == TokenKind::unknown;
  if (hidden && skip_special_) return {};
  // decode() of one token alone applies the rule for the beginning of a text.
  if (at_start_ && !hidden) {
    at_start_ = false;
    pending_ += tokenizer_->decode({&id, 1}, false);
  } else {
    pending_ += tokenizer_->bytes(id);
  }
  return take_complete(false);
}

std::string Detokenizer::finish() {
  return take_complete(true);
}

std::string Detokenizer::take_complete(bool at_end) {
  const size_t held = at_end ? 0 : text::incomplete_tail(pending_);
  const std::string_view ready = std::string_view(pending_).substr(0, pending_.size() - held);
  std::string out = text::replace_invalid(ready);
  pending_.erase(0, ready.size());
  return out;
}

}  // namespace headrace
