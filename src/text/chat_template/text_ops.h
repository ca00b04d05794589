// Operations of Python's str on provenance-keeping text, shared by filters and methods.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "text/chat_template/text.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

/// A half-open range of bytes.
struct Span {
  size_t begin = 0, end = 0;
};

enum class Side : uint8_t { left, right, both };

/// What is left of `text` without white space at its ends.
Span stripped(const Text& text, Side side);
/// The same with the code points of `chars` (white space if null).
Span stripped(Budget& budget, const Text& text, const Text* chars, Side side);

/// Every code point replaced by what `map(out, code_point, at)` appends.
Text map_code_points(Budget& budget, const Text& text,
                     const std::function<void(std::string&, int32_t, size_t)>& map);
Text lower_text(Budget& budget, const Text& text);
Text upper_text(Budget& budget, const Text& text);
/// First code point in title case, the rest in lower case.
Text capitalize_text(Budget& budget, const Text& text);

/// str.replace; count < 0 replaces all.
Text replace_text(Budget& budget, const Text& text, const Text& old, const Text& with,
                  int64_t count);
/// str.split and str.rsplit; `separator` null: runs of white space.
std::vector<Span> split_text(Budget& budget, const Text& text, const Text* separator, int64_t limit,
                             bool from_right);
/// str.splitlines: each line without and with its end.
struct Line {
  Span text;
  size_t end_with_break = 0;
};
std::vector<Line> split_lines(Budget& budget, const Text& text);

}  // namespace headrace::jinja
