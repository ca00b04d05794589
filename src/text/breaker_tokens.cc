// See breaker_tokens.h.
#include "text/breaker_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headrace {
namespace {

constexpr size_t kRememberedBreakers = 8;

BreakerTokens find_breakers(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::array<std::vector<size_t>, 256> by_first_byte;
  for (size_t i = 0; i < texts.size(); ++i) {
    by_first_byte[static_cast<unsigned char>(texts[i].front())].push_back(i);
  }
  std::vector<bool> is_found(texts.size());
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokenizer.vocab_size() && !texts.empty(); ++id) {
    const std::string bytes = tokenizer.bytes(id);
    bool breaks = false;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const size_t i : by_first_byte[static_cast<unsigned char>(bytes[at])]) {
        if (!std::string_view(bytes).substr(at).starts_with(texts[i])) continue;
        is_found[i] = true;
        breaks = true;
      }
    }
    if (breaks) ids.push_back(id);
  }
  BreakerTokens out;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!is_found[i]) out.unknown.push_back(texts[i]);
  }
  out.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
  return out;
}

}  // namespace

const std::vector<std::string>& default_breakers() {
  static const std::vector<std::string> texts = {"\n", ":", "\"", "*"};
  return texts;
}

Result<void> check_breakers(std::span<const std::string> texts) {
  if (texts.size() > kMaxBreakers) {
    return Error{ErrorCode::invalid_argument,
                 "at most " + std::to_string(kMaxBreakers) +
                     " sequence breakers are allowed, found " + std::to_string(texts.size()),
                 "", ""};
  }
  for (const std::string& text : texts) {
    if (!text.empty() && text.size() <= kMaxBreakerBytes) continue;
    return Error{ErrorCode::invalid_argument,
                 "a sequence breaker must have 1 to " + std::to_string(kMaxBreakerBytes) +
                     " bytes, found " + std::to_string(text.size()),
                 "", ""};
  }
  return {};
}

BreakerFinder::BreakerFinder(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {}

BreakerTokens BreakerFinder::find(const std::vector<std::string>& texts) const {
  {
    const std::scoped_lock lock(mutex_);
    const auto is_asked = [&](const Known& known) { return known.texts == texts; };
    const auto at = std::find_if(known_.begin(), known_.end(), is_asked);
    if (at != known_.end()) {
      std::rotate(at, at + 1, known_.end());
      return known_.back().tokens;
    }
  }
  BreakerTokens found = find_breakers(*tokenizer_, texts);
  const std::scoped_lock lock(mutex_);
  if (known_.size() >= kRememberedBreakers) known_.erase(known_.begin());
  known_.push_back({texts, found});
  return found;
}

}  // namespace headrace
