// "..." % values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "text/chat_template/format.h"
#include "text/chat_template/format_padding.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

int64_t whole_number(const Value& value, char type) {
  if (value.is_int()) return value.as_int();
  if (value.is(Kind::real) && type == 'd') {
    const double d = std::trunc(value.as_real());
    if (std::abs(d) < 9.2e18) return static_cast<int64_t>(d);
    fail("a number does not fit 64 bits in a format");
  }
  fail(std::string("%") + type + " format: a number is required, not " +
       std::string(type_name(value)));
}

/// One "%..." run: reads flags, width, precision and type, and takes its arguments.
class PercentFormat {
 public:
  PercentFormat(Interpreter& in, const Text& format, const Value& arguments)
      : in_(in), format_(format), text_(format.view()), arguments_(arguments), out_(in.budget()) {}

  Value run() {
    size_t pos = 0;
    while (pos < text_.size()) {
      const size_t percent = std::min(text_.find('%', pos), text_.size());
      out_.append(format_, pos, percent);
      pos = percent;
      if (pos < text_.size()) conversion(pos);
    }
    if (!mapping_used_ && !arguments_.is(Kind::dict) && !arguments_.is_undefined() &&
        !arguments_.is(Kind::list)) {
      const size_t given = arguments_.is(Kind::tuple) ? arguments_.as<Sequence>().items.size() : 1;
      if (next_ < given) fail("not all arguments converted during string formatting");
    }
    Text text = out_.take();
    text.set_markup(format_.markup());
    return in_.make_string(std::move(text));
  }

 private:
  Value next_argument() {
    if (arguments_.is(Kind::tuple)) {
      const auto& items = arguments_.as<Sequence>().items;
      if (next_ >= items.size()) fail("not enough arguments for format string");
      return items[next_++];
    }
    if (next_++ > 0) fail("not enough arguments for format string");
    return arguments_;
  }

  int64_t star_or_number(size_t& pos) {
    if (pos < text_.size() && text_[pos] == '*') {
      ++pos;
      return need_int(next_argument(), "* in a format");
    }
    return read_number(text_, pos);
  }

  void conversion(size_t& pos) {
    const size_t start = pos++;
    Value argument;
    bool has_argument = false;
    if (pos < text_.size() && text_[pos] == '(') {
      const size_t close = text_.find(')', pos);
      if (close == std::string_view::npos) fail("incomplete format key");
      if (!arguments_.is(Kind::dict)) fail("format requires a mapping");
      const auto key = text_.substr(pos + 1, close - pos - 1);
      const Value* found = arguments_.as<Dict>().entries.find(key);
      if (found == nullptr) fail("a format names the missing key '" + std::string(key) + "'");
      argument = *found;
      has_argument = mapping_used_ = true;
      pos = close + 1;
    }
    FormatSpec spec;
    char align = '>';
    bool zero = false;
    for (; pos < text_.size(); ++pos) {
      const char c = text_[pos];
      if (c == '-')
        align = '<';
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        zero = true;
      else
        break;
    }
    if (pos < text_.size() && text_[pos] == '*') {
      spec.width = star_or_number(pos);
      if (spec.width < 0) {
        align = '<';
        spec.width = spec.width == std::numeric_limits<int64_t>::min() ? 0 : -spec.width;
      }
    } else {
      spec.width = std::max<int64_t>(0, read_number(text_, pos));
    }
    if (pos < text_.size() && text_[pos] == '.') {
      ++pos;
      spec.precision = std::max<int64_t>(0, star_or_number(pos));
    }
    while (pos < text_.size() && (text_[pos] == 'l' || text_[pos] == 'h' || text_[pos] == 'L'))
      ++pos;
    if (pos >= text_.size()) fail("incomplete format");
    const char type = text_[pos++];
    in_.budget().check_bytes(static_cast<size_t>(spec.width));
    const bool trusted = format_.trusted(start, pos);
    if (type == '%') {
      out_.append("%", trusted);
      return;
    }
    if (!has_argument) argument = next_argument();
    convert(type, argument, spec, zero && align == '>' ? '=' : align, zero, trusted);
  }

  void convert(char type, const Value& argument, FormatSpec& spec, char align, bool zero,
               bool trusted) {
    if (type == 's' || type == 'r' || type == 'a') {
      Text text = type == 's' ? in_.to_text(argument, true) : in_.to_repr(argument);
      if (format_.markup() && !text.markup()) {
        TextBuilder escaped(in_.budget());
        append_escaped_if(escaped, text, true);
        text = escaped.take();
      }
      append_padded(out_, in_.budget(), cut(text, spec.precision), spec, align == '=' ? '>' : align,
                    trusted);
      return;
    }
    if (type == 'c') {
      const Text letter = character(argument);
      append_padded(out_, in_.budget(), letter, spec, align == '=' ? '>' : align, trusted);
      return;
    }
    if (argument.is_undefined()) fail_undefined(argument);
    NumberText number;
    if (std::string_view("diu").find(type) != std::string_view::npos) {
      spec.type = 'd';
      number = format_integer(whole_number(argument, 'd'), spec);
      pad_digits(number, spec.precision);
    } else if (std::string_view("xXo").find(type) != std::string_view::npos) {
      spec.type = type;
      number = format_integer(whole_number(argument, type), spec);
      pad_digits(number, spec.precision);
    } else if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
      if (!argument.is_number()) {
        fail("must be real number, not " + std::string(type_name(argument)));
      }
      spec.type = type;
      number = format_real(argument.as_real(), spec);
    } else {
      fail(std::string("unsupported format character '") + type + "'");
    }
    if (zero) spec.fill = align == '=' ? "0" : " ";
    append_number(out_, in_.budget(), number, spec, align, trusted && !argument.tainted(), trusted);
  }

  void pad_digits(NumberText& number, int64_t precision) {
    if (precision <= 0) return;
    in_.budget().check_bytes(static_cast<size_t>(precision));
    const auto wanted = static_cast<size_t>(precision);
    in_.budget().step_bytes(wanted);
    if (number.digits.size() < wanted) {
      number.digits.insert(0, wanted - number.digits.size(), '0');
    }
  }

  Text character(const Value& argument) {
    if (argument.is_string() && argument.as<String>().num_chars == 1) return argument.text();
    if (!argument.is_int() || argument.as_int() < 0 || argument.as_int() > 0x10FFFF ||
        (argument.as_int() >= 0xD800 && argument.as_int() <= 0xDFFF)) {
      fail("%c requires an int in range(0x110000) or a single character");
    }
    std::string out;
    append_utf8(out, static_cast<int32_t>(argument.as_int()));
    return Text(std::move(out), !argument.tainted());
  }

  Interpreter& in_;
  const Text& format_;
  std::string_view text_;
  const Value& arguments_;
  TextBuilder out_;
  size_t next_ = 0;
  bool mapping_used_ = false;
};

}  // namespace

Value format_percent(Interpreter& in, const Text& format, const Value& arguments) {
  return PercentFormat(in, format, arguments).run();
}

}  // namespace headrace::jinja
