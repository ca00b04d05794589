// Breaking text into lines of a width.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/function_ref.h"
#include "text/chat_template/budget.h"

namespace headrace::jinja {

struct WrapOptions {
  int64_t width = 79;            ///< code points a line, at least 1
  bool break_long_words = true;  ///< else a word that is too long has a line of its own
  bool split_at_hyphens = true;  ///< a line may end after a hyphen between letters
  bool cut_at_hyphens = true;    ///< where a long word is broken, rather after a hyphen in it
};

/// textwrap.wrap of Python 3.11 with tabs and other white space kept: calls line(begin, end) with
/// the bytes of each line of `paragraph`, which has no line breaks. White space around lines is
/// left out, but for the paragraph's own before the first. Steps and time are linear.
void wrap_paragraph(Budget& budget, std::string_view paragraph, const WrapOptions& options,
                    FunctionRef<void(size_t, size_t)> line);

}  // namespace headrace::jinja
