#include "text/chat_template/text_ops.h"

#include <algorithm>
#include <bitset>

#include "text/chat_template/text_search.h"

namespace headrace::jinja {

namespace {

/// The code points of a string, and its bytes that belong to none.
class CodePointSet {
 public:
  CodePointSet(Budget& budget, std::string_view text) {
    budget.step_bytes(text.size());
    for (size_t at = 0; at < text.size();) {
      const auto c = decode_at(text, at);
      if (c.value < 0) {
        bytes_.set(static_cast<unsigned char>(text[at]));
      } else {
        const auto value = static_cast<size_t>(c.value);
        if (value >= code_points_.size()) code_points_.resize(value + 1);
        code_points_[value] = true;
      }
      at += c.length;
    }
  }
  bool holds(int32_t value, char byte) const {
    if (value < 0) return bytes_[static_cast<unsigned char>(byte)];
    return static_cast<size_t>(value) < code_points_.size() &&
           code_points_[static_cast<size_t>(value)];
  }

 private:
  std::vector<bool> code_points_;
  std::bitset<256> bytes_;
};

/// What is left of `text` without the letters at its ends of which strips(code point, byte) holds.
template <class Strips>
Span strip_ends(const Text& text, Side side, Strips strips) {
  const auto view = text.view();
  Span span{0, view.size()};
  while (side != Side::right && span.begin < span.end) {
    const auto c = decode_at(view, span.begin);
    if (!strips(c.value, view[span.begin])) break;
    span.begin += c.length;
  }
  while (side != Side::left && span.end > span.begin) {
    const size_t start = previous_start(view.substr(0, span.end), span.end);
    const auto c = decode_at(view, start);
    if (!strips(c.value, view[start])) break;
    span.end = start;
  }
  return span;
}

}  // namespace

Span stripped(const Text& text, Side side) {
  return strip_ends(text, side, [](int32_t c, char) { return is_space(c); });
}

Span stripped(Budget& budget, const Text& text, const Text* chars, Side side) {
  if (chars == nullptr) return stripped(text, side);
  const CodePointSet set(budget, chars->view());
  return strip_ends(text, side, [&](int32_t c, char byte) { return set.holds(c, byte); });
}

Text map_code_points(Budget& budget, const Text& text,
                     const std::function<void(std::string&, int32_t, size_t)>& map) {
  const auto view = text.view();
  budget.step(static_cast<int64_t>(view.size() / 16));
  TextBuilder out(budget);
  std::string piece;
  for (size_t at = 0; at < view.size();) {
    const auto c = decode_at(view, at);
    piece.clear();
    if (c.value < 0) {
      piece.push_back(view[at]);
    } else {
      map(piece, c.value, at);
    }
    out.append(piece, text.trusted(at, at + c.length));
    at += c.length;
  }
  Text result = out.take();
  result.set_markup(text.markup());
  return result;
}

Text lower_text(Budget& budget, const Text& text) {
  const auto view = text.view();
  return map_code_points(budget, text, [&](std::string& out, int32_t c, size_t at) {
    constexpr int32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
    if (c == kSigma) {
      const bool after = at > 0 && is_alpha(decode_at(view, previous_start(view, at)).value);
      const size_t next = at + 2;
      const bool before = next < view.size() && is_alpha(decode_at(view, next).value);
      if (after && !before) {
        append_utf8(out, kFinalSigma);
        return;
      }
    }
    append_case(out, c, Case::lower);
  });
}

Text upper_text(Budget& budget, const Text& text) {
  return map_code_points(
      budget, text, [](std::string& out, int32_t c, size_t) { append_case(out, c, Case::upper); });
}

Text capitalize_text(Budget& budget, const Text& text) {
  const Text low = lower_text(budget, text);
  const size_t first = text.empty() ? 0 : decode_at(text.view(), 0).length;
  Text out = map_code_points(
      budget, text.slice(0, first),
      [](std::string& piece, int32_t c, size_t) { append_case(piece, c, Case::title); });
  const size_t low_first = low.empty() ? 0 : decode_at(low.view(), 0).length;
  out.append(low, low_first, low.size());
  return out;
}

Text replace_text(Budget& budget, const Text& text, const Text& old, const Text& with,
                  int64_t count) {
  TextBuilder out(budget);
  const auto view = text.view();
  size_t from = 0;
  budget.step_bytes(view.size());
  if (old.empty()) {
    // Python puts the new text before each code point and at the end.
    for (size_t at = 0; count != 0; --count) {
      budget.step();
      out.append(with);
      if (at == view.size()) break;
      const size_t next = at + decode_at(view, at).length;
      out.append(text, at, next);
      from = at = next;
    }
  } else {
    TextSearch search(budget, old.view());
    for (; count != 0; --count) {
      const size_t at = search.find(view, from);
      if (at == std::string_view::npos) break;
      budget.step();
      out.append(text, from, at);
      out.append(with);
      from = at + old.size();
    }
  }
  out.append(text, from, view.size());
  return out.take();
}

namespace {

std::vector<Span> split_on(Budget& budget, std::string_view view, std::string_view separator,
                           int64_t limit, bool from_right) {
  std::vector<Span> out;
  TextSearch search(budget, separator);
  Span rest{0, view.size()};
  for (; limit != 0; --limit) {
    budget.step();
    const auto part = view.substr(0, rest.end);
    const size_t at = from_right ? search.rfind(part) : search.find(part, rest.begin);
    if (at == std::string_view::npos) break;
    if (from_right) {
      out.push_back({at + separator.size(), rest.end});
      rest.end = at;
    } else {
      out.push_back({rest.begin, at});
      rest.begin = at + separator.size();
    }
  }
  out.push_back(rest);
  if (from_right) std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<Span> split_text(Budget& budget, const Text& text, const Text* separator, int64_t limit,
                             bool from_right) {
  budget.step_bytes(text.size());
  if (separator != nullptr) {
    if (separator->empty()) fail("empty separator");
    return split_on(budget, text.view(), separator->view(), limit, from_right);
  }
  const auto view = text.view();
  std::vector<Span> words;
  Span rest{0, view.size()};
  const auto strip = [&](Side side) {
    const Span inner = stripped(text.slice(rest.begin, rest.end), side);
    rest = {rest.begin + inner.begin, rest.begin + inner.end};
  };
  if (limit < 0) {
    for (size_t at = 0; at < view.size();) {
      const auto c = decode_at(view, at);
      if (is_space(c.value)) {
        at += c.length;
        continue;
      }
      const size_t begin = at;
      while (at < view.size() && !is_space(decode_at(view, at).value)) {
        at += decode_at(view, at).length;
      }
      budget.step();
      words.push_back({begin, at});
    }
    return words;
  }
  for (; limit > 0; --limit) {
    strip(from_right ? Side::right : Side::left);
    budget.step_bytes(rest.end - rest.begin);
    budget.step();
    if (rest.begin == rest.end) break;
    size_t at = from_right ? rest.end : rest.begin;
    if (from_right) {
      while (at > rest.begin) {
        const size_t start = previous_start(view.substr(0, at), at);
        if (is_space(decode_at(view, start).value)) break;
        at = start;
      }
      words.push_back({at, rest.end});
      rest.end = at;
    } else {
      while (at < rest.end && !is_space(decode_at(view, at).value)) {
        at += decode_at(view, at).length;
      }
      words.push_back({rest.begin, at});
      rest.begin = at;
    }
  }
  strip(from_right ? Side::right : Side::left);
  if (rest.begin < rest.end) words.push_back(rest);
  if (from_right) std::reverse(words.begin(), words.end());
  return words;
}

std::vector<Line> split_lines(Budget& budget, const Text& text) {
  std::vector<Line> lines;
  const auto view = text.view();
  size_t begin = 0;
  budget.step_bytes(view.size());
  for (size_t at = 0; at < view.size();) {
    const auto c = decode_at(view, at);
    size_t next = at + c.length;
    if (is_line_break(c.value)) {
      if (c.value == '\r' && next < view.size() && view[next] == '\n') ++next;
      budget.step();
      lines.push_back({{begin, at}, next});
      begin = next;
    }
    at = next;
  }
  if (begin < view.size()) lines.push_back({{begin, view.size()}, view.size()});
  return lines;
}

}  // namespace headrace::jinja
