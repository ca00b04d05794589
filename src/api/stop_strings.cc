// See stop_strings.h.
#include "api/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace::api {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (size_t i = 0; i < strings_.size(); ++i) {
    HEADRACE_CHECK(!strings_[i].empty());
    auto& shorter = shorter_.emplace_back(strings_[i].size(), 0);
    for (size_t n = 1; n < shorter.size(); ++n) {
      shorter[n] = static_cast<uint32_t>(advance(i, shorter[n - 1], strings_[i][n]));
    }
  }
}

size_t StopStrings::advance(size_t i, size_t matched, char byte) const {
  const std::string& string = strings_[i];
  while (matched > 0 && string[matched] != byte) matched = shorter_[i][matched - 1];
  return string[matched] == byte ? matched + 1 : 0;
}

StopMatcher::StopMatcher(std::shared_ptr<const StopStrings> strings)
    : strings_(std::move(strings)), matched_(strings_ ? strings_->size() : 0, 0) {}

std::string StopMatcher::push(std::string_view piece) {
  if (has_stopped() || piece.empty()) return {};
  if (matched_.empty()) return std::string(piece);
  std::string text = std::exchange(held_, {});
  size_t longest = 0;
  for (const char byte : piece) {
    text += byte;
    longest = 0;
    for (size_t i = 0; i < matched_.size(); ++i) {
      matched_[i] = static_cast<uint32_t>(strings_->advance(i, matched_[i], byte));
      const size_t size = strings_->text(i).size();
      if (matched_[i] == size && (stop_ < 0 || size > stop().size()))
        stop_ = static_cast<int32_t>(i);
      longest = std::max<size_t>(longest, matched_[i]);
    }
    if (has_stopped()) {
      text.resize(text.size() - stop().size());
      return text;
    }
  }
  // Strings begin with whole characters, so nothing is cut within one.
  held_ = text.substr(text.size() - longest);
  text.resize(text.size() - longest);
  return text;
}

std::string StopMatcher::finish() {
  std::fill(matched_.begin(), matched_.end(), 0);
  return std::exchange(held_, {});
}

}  // namespace headrace::api
