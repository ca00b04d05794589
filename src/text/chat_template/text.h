// A string that remembers which of its bytes the template wrote (trusted) and which came from
// messages (untrusted). Every operation keeps that per byte; comparison ignores it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template/budget.h"

namespace headrace::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool trusted) : bytes_(std::move(bytes)), first_trusted_(trusted) {}

  const std::string& bytes() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  bool all_trusted() const { return bytes_.empty() || (first_trusted_ && cuts_.empty()); }
  /// Whether every byte of [from, to) is trusted. An empty range is.
  bool trusted(size_t from, size_t to) const;

  /// Calls fn(begin, end, trusted) for each run of equal trust in [from, to).
  template <class F>
  void for_each_run(size_t from, size_t to, F&& fn) const {
    auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), from);
    bool trust = first_trusted_ != (((cut - cuts_.begin()) & 1) != 0);
    while (from < to) {
      const size_t end = cut == cuts_.end() ? to : std::min(*cut, to);
      fn(from, end, trust);
      from = end;
      trust = !trust;
      if (cut != cuts_.end()) ++cut;
    }
  }

  void append(std::string_view bytes, bool trusted);
  void append(const Text& other, size_t from, size_t to);
  void append(const Text& other) { append(other, 0, other.size()); }
  Text slice(size_t from, size_t to) const;

  /// Made by `safe` or `escape`: joining it with other text escapes the latter (markupsafe).
  bool markup() const { return markup_; }
  void set_markup(bool markup) { markup_ = markup; }

 private:
  bool last_trusted() const { return first_trusted_ != ((cuts_.size() & 1) != 0); }

  std::string bytes_;
  std::vector<size_t> cuts_;  // offsets at which trust flips; strictly inside (0, size)
  bool first_trusted_ = true;
  bool markup_ = false;
};

/// Collects a Text under a budget.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget) {}

  void append(std::string_view bytes, bool trusted) {
    grow(bytes.size());
    text_.append(bytes, trusted);
  }
  void append(const Text& text) { append(text, 0, text.size()); }
  void append(const Text& text, size_t from, size_t to) {
    grow(to - from);
    text_.append(text, from, to);
  }
  void repeat(const Text& text, int64_t count) {
    budget_.check_product(text.size(), count);
    for (int64_t i = 0; i < count; ++i) append(text);
  }
  void pad(char c, int64_t count, bool trusted) {
    if (count <= 0) return;
    budget_.check_bytes(static_cast<size_t>(count));
    append(std::string(static_cast<size_t>(count), c), trusted);
  }
  const Text& text() const { return text_; }
  Text take() { return std::move(text_); }

 private:
  void grow(size_t n) {
    budget_.check_bytes(text_.size() + n);
    budget_.step_bytes(n);
  }
  Budget& budget_;
  Text text_;
};

}  // namespace headrace::jinja
