#include "text/chat_template/format_padding.h"

#include <algorithm>
#include <charconv>

#include "text/chat_template/unicode.h"

namespace headrace::jinja {

int64_t read_number(std::string_view text, size_t& pos) {
  if (pos >= text.size() || text[pos] < '0' || text[pos] > '9') return -1;
  int64_t value = 0;
  const auto done = std::from_chars(text.data() + pos, text.data() + text.size(), value);
  if (done.ec != std::errc()) fail("a number in a format is too large");
  pos = static_cast<size_t>(done.ptr - text.data());
  return value;
}

void append_padded(TextBuilder& out, Budget& budget, const Text& text, const FormatSpec& spec,
                   char align, bool trusted) {
  const int64_t missing =
      std::max<int64_t>(0, spec.width - static_cast<int64_t>(count_code_points(text.view())));
  const int64_t left = align == '>' ? missing : (align == '^' ? missing / 2 : 0);
  budget.step(missing);
  const Text fill(spec.fill, trusted);
  out.repeat(fill, left);
  out.append(text);
  out.repeat(fill, missing - left);
}

void append_number(TextBuilder& out, Budget& budget, const NumberText& number,
                   const FormatSpec& spec, char align, bool number_trusted, bool pad_trusted) {
  if (align != '=') {
    append_padded(out, budget, Text(number.sign + number.digits, number_trusted), spec, align,
                  pad_trusted);
    return;
  }
  const auto used = static_cast<int64_t>(number.sign.size() + number.digits.size());
  out.append(number.sign, number_trusted);
  const int64_t missing = std::max<int64_t>(0, spec.width - used);
  budget.step(missing);
  out.repeat(Text(spec.fill, pad_trusted), missing);
  out.append(number.digits, number_trusted);
}

Text cut(const Text& text, int64_t precision) {
  if (precision < 0) return text;
  return text.slice(0, byte_offset(text.view(), static_cast<size_t>(precision)));
}

}  // namespace headrace::jinja
