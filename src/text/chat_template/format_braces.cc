// "...".format(values).
#include <algorithm>

#include "text/chat_template/format.h"
#include "text/chat_template/format_padding.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

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
      in_.budget().step(1 + static_cast<int64_t>(args_.named.size() / 16));
      const auto found =
          std::find_if(args_.named.begin(), args_.named.end(),
                       [&](const auto& named) { return named.first.view() == first; });
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
