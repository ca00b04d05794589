// See choice_text.h.
#include "api/choice_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace headrace::api {

ChoiceText::ChoiceText(std::shared_ptr<const Tokenizer> tokenizer, const ChoiceTextOptions& options)
    : detokenizer_(std::move(tokenizer), true, options.goes_on),
      matcher_(options.stop_strings),
      min_tokens_(options.min_tokens),
      keeps_tokens_(options.keeps_tokens) {}

std::string ChoiceText::push(const TokenEvent& token) {
  if (has_stopped()) {
    ++num_overrun_;
    return {};
  }
  ++num_tokens_;
  if (keeps_tokens_) {
    tokens_.push_back({token.id, token.logprob, token.top, detokenized_bytes_, 0});
  }
  const std::string piece = detokenizer_.push(token.id);
  detokenized_bytes_ += piece.size();
  if (!detokenizer_.holds_back()) {
    for (; num_placed_ < tokens_.size(); ++num_placed_) {
      tokens_[num_placed_].end = detokenized_bytes_;
    }
  }
  return pass(piece);
}

std::string ChoiceText::pass(const std::string& piece) {
  std::string out = num_tokens_ <= min_tokens_ ? piece : matcher_.push(piece);
  given_bytes_ += out.size();
  return out;
}

std::string ChoiceText::finish() {
  if (has_stopped()) return {};
  const std::string piece = detokenizer_.finish();
  detokenized_bytes_ += piece.size();
  for (; num_placed_ < tokens_.size(); ++num_placed_) {
    tokens_[num_placed_].end = detokenized_bytes_;
  }
  std::string out = pass(piece);
  const std::string rest = matcher_.finish();
  given_bytes_ += rest.size();
  return out + rest;
}

std::vector<TokenText> ChoiceText::take_tokens() {
  const auto end = std::find_if(tokens_.begin(), tokens_.begin() + std::ptrdiff_t(num_placed_),
                                [&](const TokenText& token) { return token.end > given_bytes_; });
  std::vector<TokenText> out(std::make_move_iterator(tokens_.begin()),
                             std::make_move_iterator(end));
  tokens_.erase(tokens_.begin(), end);
  num_placed_ -= out.size();
  return out;
}

}  // namespace headrace::api
