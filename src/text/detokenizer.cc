// See detokenizer.h.
#include "text/detokenizer.h"

#include "text/unicode.h"

namespace headrace {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special,
                         bool goes_on)
    : tokenizer_(std::move(tokenizer)),
      stream_(tokenizer_->start_decoding(skip_special, goes_on)) {}

std::string Detokenizer::push(TokenId id) {
  stream_->push(id, pending_);
  return take_complete(false);
}

std::string Detokenizer::finish() {
  stream_->finish(pending_);
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
