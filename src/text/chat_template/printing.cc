// str() and repr() of values. The result is trusted only if every part of the value is.
#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/printing.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

std::string repr_of_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The shortest digits that read back as the same number, as d[.ddd]e[+-]xx.
  char buffer[40];
  const auto done =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(done.ptr - buffer));
  std::string out;
  if (text.starts_with('-')) {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  int exponent = 0;
  const auto power = text.substr(text[e + 1] == '+' ? e + 2 : e + 1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    const int magnitude = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    if (magnitude < 10) out += "0";
    return out + std::to_string(magnitude);
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

/// What stands for `c` in a repr, quotes aside; empty where it stands for itself.
std::string_view escape_of(int32_t c, char (&buffer)[16]) {
  switch (c) {
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (c < 0 || is_printable(c)) return {};
  const char* format = c < 0x100 ? "\\x%02x" : (c < 0x10000 ? "\\u%04x" : "\\U%08x");
  const int size = std::snprintf(buffer, sizeof(buffer), format, static_cast<unsigned>(c));
  return {buffer, static_cast<size_t>(size)};
}

}  // namespace

std::string repr_of_string(std::string_view text) {
  const bool has_double = text.find('"') != text.npos;
  const char quote = text.find('\'') != text.npos && !has_double ? '"' : '\'';
  std::string out(1, quote);
  char buffer[16];
  for (size_t at = 0; at < text.size();) {
    const auto c = decode_at(text, at);
    const std::string_view escape = escape_of(c.value, buffer);
    if (c.value == quote) out += '\\';
    out += escape.empty() ? text.substr(at, c.length) : escape;
    at += c.length;
  }
  out += quote;
  return out;
}

void ReprWidth::add(std::string_view piece) {
  char buffer[16];
  for (size_t at = 0; at < piece.size();) {
    const auto c = decode_at(piece, at);
    const std::string_view escape = escape_of(c.value, buffer);
    width_ += escape.empty() ? 1 : static_cast<int64_t>(escape.size());
    singles_ += c.value == '\'' ? 1 : 0;
    has_double_ = has_double_ || c.value == '"';
    at += c.length;
  }
}

namespace {

class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void repr(const Value& value);
  Text take() { return Text(std::move(out_), trusted_); }

 private:
  void add(std::string_view text) {
    budget_.check_bytes(out_.size() + text.size());
    out_ += text;
  }
  void items(std::string_view open, const std::vector<Value>& values, std::string_view close) {
    add(open);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) add(", ");
      repr(values[i]);
    }
    add(close);
  }
  void entries(const Entries& of) {
    add("{");
    bool first = true;
    for (const auto& [key, value] : of.all()) {
      if (!first) add(", ");
      first = false;
      repr(key);
      add(": ");
      repr(value);
    }
    add("}");
  }
  void view(const View& view);
  void string(const Text& text);

  Budget& budget_;
  std::string out_;
  bool trusted_ = true;
  int32_t depth_ = 0;  // namespaces can hold themselves
};

void Printer::string(const Text& text) {
  trusted_ = trusted_ && text.all_trusted();
  budget_.step_bytes(text.size());
  if (text.markup()) add("Markup(");
  add(repr_of_string(text.view()));
  if (text.markup()) add(")");
}

void Printer::view(const View& view) {
  const auto& all = view.dict.as<Dict>().entries.all();
  add(view.what == View::What::keys     ? "dict_keys(["
      : view.what == View::What::values ? "dict_values(["
                                        : "dict_items([");
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) add(", ");
    if (view.what == View::What::items) add("(");
    if (view.what != View::What::values) repr(all[i].first);
    if (view.what == View::What::items) add(", ");
    if (view.what != View::What::keys) repr(all[i].second);
    if (view.what == View::What::items) add(")");
  }
  add("])");
}

void Printer::repr(const Value& value) {
  budget_.step();
  trusted_ = trusted_ && !value.tainted();
  if (++depth_ > 2 * budget_.max_depth()) fail_limit("values nest too deeply (max_depth)");
  switch (value.kind()) {
    case Kind::undefined:
      add("Undefined");
      break;
    case Kind::none:
      add("None");
      break;
    case Kind::boolean:
      add(value.as_int() != 0 ? "True" : "False");
      break;
    case Kind::integer:
      add(std::to_string(value.as_int()));
      break;
    case Kind::real:
      add(repr_of_double(value.as_real()));
      break;
    case Kind::string:
      string(value.text());
      break;
    case Kind::list:
      items("[", value.as<Sequence>().items, "]");
      break;
    case Kind::tuple: {
      const auto& parts = value.as<Sequence>().items;
      items("(", parts, parts.size() == 1 ? ",)" : ")");
      break;
    }
    case Kind::dict:
      entries(value.as<Dict>().entries);
      break;
    case Kind::view:
      view(value.as<View>());
      break;
    case Kind::range: {
      const auto& range = value.as<Range>();
      add("range(" + std::to_string(range.start) + ", " + std::to_string(range.stop));
      if (range.step != 1) add(", " + std::to_string(range.step));
      add(")");
      break;
    }
    case Kind::iterator:
      add("<generator object>");
      break;
    case Kind::space:
      add("<Namespace ");
      entries(value.as<Space>().attributes);
      add(">");
      break;
    case Kind::loop: {
      const auto& loop = value.as<Loop>();
      add("<LoopContext " + std::to_string(loop.index0 + 1) + "/" +
          std::to_string(loop.items.size()) + ">");
      break;
    }
    case Kind::function:
      add("<function " + value.as<Function>().name + ">");
      break;
  }
  --depth_;
}

}  // namespace

Text Interpreter::to_repr(const Value& value) {
  Printer printer(budget_);
  printer.repr(value);
  return printer.take();
}

Text Interpreter::to_text(const Value& value, bool keep_markup) {
  if (value.is_undefined()) return Text();
  if (!value.is_string()) return to_repr(value);
  budget_.step_bytes(value.text().size());
  Text text = value.text();
  if (!keep_markup) text.set_markup(false);
  return text;
}

}  // namespace headrace::jinja
