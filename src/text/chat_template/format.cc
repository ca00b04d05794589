#include "text/chat_template/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/number_format.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

/// The decimal number at text[pos], moving pos; -1 where there is none. Fails on absurd ones.
int64_t read_number(std::string_view text, size_t& pos) {
  if (pos >= text.size() || text[pos] < '0' || text[pos] > '9') return -1;
  int64_t value = 0;
  const auto done = std::from_chars(text.data() + pos, text.data() + text.size(), value);
  if (done.ec != std::errc()) fail("a number in a format is too large");
  pos = static_cast<size_t>(done.ptr - text.data());
  return value;
}

int64_t code_points(const Text& text) {
  return static_cast<int64_t>(count_code_points(text.view()));
}

/// Appends `text` padded to `width` code points.
void append_padded(TextBuilder& out, Budget& budget, const Text& text, const FormatSpec& spec,
                   char align, bool trusted) {
  const int64_t missing = std::max<int64_t>(0, spec.width - code_points(text));
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
    spec.width = star_or_number(pos);
    if (spec.width < 0) {
      align = spec.width < -1 ? '<' : align;
      spec.width = spec.width < -1 ? -spec.width : 0;
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

namespace {

FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
  size_t pos = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const size_t first = decode_at(text, 0).length;
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      pos = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      pos = 1;
    }
  }
  const auto take = [&](std::string_view any) {
    return pos < text.size() && any.find(text[pos]) != std::string_view::npos ? text[pos++] : '\0';
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != 0;
  if (take("0") != 0) {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = std::max<int64_t>(0, read_number(text, pos));
  spec.grouping = take(",_");
  if (take(".") != 0) {
    spec.precision = read_number(text, pos);
    if (spec.precision < 0) fail("format specifier missing precision");
  }
  spec.type = take("bcdeEfFgGnosxX%");
  if (pos != text.size()) fail("invalid format specifier '" + std::string(text) + "'");
  return spec;
}

class BraceFormat {
 public:
  BraceFormat(Interpreter& in, const Text& format, const Args& args)
      : in_(in), format_(format), args_(args) {}

  Text run() { return expand(format_, 2); }

 private:
  /// `levels`: how deep fields may nest in specifications, as in Python.
  Text expand(const Text& format, int levels) {
    if (levels == 0) fail("max string recursion exceeded");
    TextBuilder out(in_.budget());
    const auto text = format.view();
    size_t pos = 0;
    while (pos < text.size()) {
      const size_t brace = std::min(text.find_first_of("{}", pos), text.size());
      out.append(format, pos, brace);
      if (brace == text.size()) break;
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
        out.append(format, brace, brace + 1);
        pos = brace + 2;
        continue;
      }
      if (text[brace] == '}') fail("single '}' encountered in format string");
      const size_t end = field_end(text, brace + 1);
      field(format, brace + 1, end, levels, out);
      pos = end + 1;
    }
    return out.take();
  }

  static size_t field_end(std::string_view text, size_t pos) {
    int open = 1;
    for (; pos < text.size(); ++pos) {
      if (text[pos] == '{') ++open;
      if (text[pos] == '}' && --open == 0) return pos;
    }
    fail("expected '}' before end of string");
  }

  void field(const Text& format, size_t begin, size_t end, int levels, TextBuilder& out) {
    const auto body = format.view().substr(begin, end - begin);
    size_t name_end = 0;
    for (bool bracket = false; name_end < body.size(); ++name_end) {
      const char c = body[name_end];
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (!bracket && (c == '!' || c == ':')) break;
    }
    Value value = lookup(body.substr(0, name_end));
    size_t pos = name_end;
    char conversion = 0;
    if (pos < body.size() && body[pos] == '!') {
      if (pos + 1 >= body.size()) fail("missing conversion after '!' in format string");
      conversion = body[pos + 1];
      pos += 2;
      if (pos < body.size() && body[pos] != ':') fail("expected ':' after conversion specifier");
    }
    if (conversion == 'r' || conversion == 'a') {
      value = in_.make_string(in_.to_repr(value));
    } else if (conversion == 's') {
      value = in_.make_string(in_.to_text(value));
    } else if (conversion != 0) {
      fail(std::string("unknown conversion specifier '") + conversion + "'");
    }
    Text spec;
    if (pos < body.size()) spec = expand(format.slice(begin + pos + 1, end), levels - 1);
    append_field(value, spec, format.trusted(begin, end) && spec.all_trusted(), out);
  }

  Value lookup(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    const auto first = name.substr(0, first_end);
    Value value;
    size_t digits_end = 0;
    const int64_t number = read_number(first, digits_end);
    if (first.empty() || (number >= 0 && digits_end == first.size())) {
      if ((first.empty() ? automatic_ == 2 : automatic_ == 1)) {
        fail("cannot switch between manual and automatic field numbering");
      }
      automatic_ = first.empty() ? 1 : 2;
      const auto index = first.empty() ? next_++ : static_cast<size_t>(number);
      if (index >= args_.positional.size()) {
        fail("replacement index " + std::to_string(index) +
             " out of range for positional args tuple");
      }
      value = args_.positional[index];
    } else {
      const auto found = std::find_if(args_.named.begin(), args_.named.end(),
                                      [&](const auto& named) { return named.first == first; });
      if (found == args_.named.end()) {
        fail("a format names the missing argument '" + std::string(first) + "'");
      }
      value = found->second;
    }
    size_t pos = first_end;
    while (pos < name.size()) {
      if (name[pos] == '.') {
        const size_t stop = std::min(name.find_first_of(".[", pos + 1), name.size());
        if (stop == pos + 1) fail("empty attribute in format string");
        value = in_.attribute(value, name.substr(pos + 1, stop - pos - 1));
        pos = stop;
      } else {
        const size_t close = name[pos] == '[' ? name.find(']', pos) : std::string_view::npos;
        if (close == std::string_view::npos) fail("missing ']' in format string");
        const auto key = name.substr(pos + 1, close - pos - 1);
        size_t used = 0;
        const int64_t index = read_number(key, used);
        value = in_.item(value, index >= 0 && used == key.size()
                                    ? Value::integer(index)
                                    : in_.make_string(std::string(key), true));
        pos = close + 1;
      }
    }
    return value;
  }

  void append_field(const Value& value, const Text& spec_text, bool trusted, TextBuilder& out) {
    if (spec_text.empty()) {
      append_escaped_if(out, in_.to_text(value, true),
                        format_.markup() && !(value.is_string() && value.text().markup()));
      return;
    }
    const FormatSpec spec = parse_spec(spec_text.view());
    in_.budget().check_bytes(static_cast<size_t>(spec.width));
    const bool number_trusted = trusted && !value.tainted();
    const char align = spec.align != 0 ? spec.align : (value.is_string() ? '<' : '>');
    TextBuilder field(in_.budget());
    if (value.is_string()) {
      if ((spec.type != 0 && spec.type != 's') || align == '=') {
        fail("unknown format code for object of type 'str'");
      }
      append_padded(field, in_.budget(), cut(value.text(), spec.precision), spec, align, trusted);
    } else if (value.is_int() &&
               std::string_view("eEfFgG%").find(spec.type) == std::string_view::npos) {
      if (spec.type == 'c' || spec.type == 's')
        fail("unknown format code for object of type 'int'");
      if (spec.precision >= 0) fail("precision not allowed in integer format specifier");
      append_number(field, in_.budget(), format_integer(value.as_int(), spec), spec, align,
                    number_trusted, trusted);
    } else if (value.is_number() && spec.type != 'd' && spec.type != 's' && spec.type != 'x') {
      append_number(field, in_.budget(), format_real(value.as_real(), spec), spec, align,
                    number_trusted, trusted);
    } else {
      fail("unsupported format string passed to " + std::string(type_name(value)));
    }
    append_escaped_if(out, field.text(), format_.markup());
  }

  Interpreter& in_;
  const Text& format_;
  const Args& args_;
  size_t next_ = 0;
  int automatic_ = 0;  // 1: "{}", 2: "{0}"
};

}  // namespace

Value format_braces(Interpreter& in, const Text& format, const Args& args) {
  Text text = BraceFormat(in, format, args).run();
  text.set_markup(format.markup());
  return in.make_string(std::move(text));
}

}  // namespace headrace::jinja
