// Methods of strings that give new strings.
#include <algorithm>

#include "text/chat_template/format.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/text_ops.h"
#include "text/chat_template/text_search.h"

namespace headrace::jinja {

namespace {

const Text* optional_chars(const Bound& bound, size_t i, std::string_view what) {
  return bound[i].is(Kind::none) ? nullptr : &need_string(bound[i], what);
}

Value strip(Interpreter& in, const Value& self, Args& args, Side side) {
  const Bound bound("strip", args, {"chars"});
  in.budget().step_bytes(self.text().size());
  const Span span = stripped(in.budget(), self.text(), optional_chars(bound, 0, "strip"), side);
  return in.make_string(self.text().slice(span.begin, span.end));
}

template <Side side>
Value method_strip(Interpreter& in, const Value& self, Args& args) {
  return strip(in, self, args, side);
}

template <Text (*map)(Budget&, const Text&)>
Value method_map(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("method", args, {});
  Text out = map(in.budget(), self.text());
  out.set_markup(self.text().markup());
  return in.make_string(std::move(out));
}

Text title_text(Budget& budget, const Text& text) {
  bool after_cased = false;
  return map_code_points(budget, text, [&](std::string& out, int32_t c, size_t) {
    append_case(out, c, after_cased ? Case::lower : Case::title);
    after_cased = is_upper(c) || is_lower(c) || is_title(c);
  });
}

Text swapcase_text(Budget& budget, const Text& text) {
  return map_code_points(budget, text, [](std::string& out, int32_t c, size_t) {
    append_case(out, c, is_upper(c) ? Case::lower : (is_lower(c) ? Case::upper : Case::fold));
  });
}

Text casefold_text(Budget& budget, const Text& text) {
  return map_code_points(
      budget, text, [](std::string& out, int32_t c, size_t) { append_case(out, c, Case::fold); });
}

Value spans_to_list(Interpreter& in, const Text& text, const std::vector<Span>& spans) {
  std::vector<Value> items;
  items.reserve(spans.size());
  for (const auto& span : spans) items.push_back(in.make_string(text.slice(span.begin, span.end)));
  return in.make_list(std::move(items));
}

template <bool from_right>
Value method_split(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("split", args, {"sep", "maxsplit"});
  const auto spans = split_text(in.budget(), self.text(), optional_chars(bound, 0, "split"),
                                bound.integer(1, -1), from_right);
  return spans_to_list(in, self.text(), spans);
}

Value method_splitlines(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("splitlines", args, {"keepends"});
  const bool keep = bound.truth(0, false);
  std::vector<Span> spans;
  for (const auto& line : split_lines(in.budget(), self.text())) {
    spans.push_back({line.text.begin, keep ? line.end_with_break : line.text.end});
  }
  return spans_to_list(in, self.text(), spans);
}

template <bool from_right>
Value method_partition(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("partition", args, {"sep"}, 1);
  const Text& separator = need_string(bound[0], "partition");
  if (separator.empty()) fail("empty separator");
  const Text& text = self.text();
  TextSearch search(in.budget(), separator.view());
  const size_t at = from_right ? search.rfind(text.view()) : search.find(text.view());
  if (at == std::string_view::npos) {
    const Value empty = in.make_string(text.slice(0, 0));
    return from_right ? in.make_tuple({empty, empty, self}) : in.make_tuple({self, empty, empty});
  }
  const size_t end = at + separator.size();
  return in.make_tuple({in.make_string(text.slice(0, at)), in.make_string(text.slice(at, end)),
                        in.make_string(text.slice(end, text.size()))});
}

Text escaped_like(Interpreter& in, const Text& text, bool markup) {
  TextBuilder out(in.budget());
  append_escaped_if(out, text, markup && !text.markup());
  return out.take();
}

Value method_replace(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("replace", args, {"old", "new", "count"}, 2);
  const bool markup = self.text().markup();
  const Text with = escaped_like(in, need_string(bound[1], "replace"), markup);
  Text out = replace_text(in.budget(), self.text(), need_string(bound[0], "replace"), with,
                          bound.integer(2, -1));
  out.set_markup(markup);
  return in.make_string(std::move(out));
}

template <bool suffix>
Value method_remove(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("removeprefix", args, {"prefix"}, 1);
  const auto part = need_string(bound[0], "removeprefix").view();
  const Text& text = self.text();
  if (suffix ? !text.view().ends_with(part) : !text.view().starts_with(part)) return self;
  return in.make_string(suffix ? text.slice(0, text.size() - part.size())
                               : text.slice(part.size(), text.size()));
}

Value method_join(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("join", args, {"iterable"}, 1);
  const bool markup = self.text().markup();
  if (bound[0].is_undefined()) return in.make_string(self.text().slice(0, 0));
  TextBuilder out(in.budget());
  size_t count = 0;
  for (const auto& item : in.iterate(bound[0])) {
    if (!item.is_string() && !markup) {
      fail("sequence item " + std::to_string(count) + ": expected str instance, " +
           std::string(type_name(item)) + " found");
    }
    if (count++ > 0) out.append(self.text());
    in.budget().step();
    append_escaped_if(out, in.to_text(item, true),
                      markup && !(item.is_string() && item.text().markup()));
  }
  Text text = out.take();
  text.set_markup(markup);
  return in.make_string(std::move(text));
}

enum class Align : uint8_t { left, right, center };

template <Align align>
Value method_justify(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("justify", args, {"width", "fillchar"}, 1);
  const Text& text = self.text();
  const bool filled = bound.has(1);
  const Text fill = filled ? escaped_like(in, need_string(bound[1], "justify"), text.markup())
                           : Text(" ", text.all_trusted());
  if (filled && bound[1].as<String>().num_chars != 1) {
    fail("the fill character must be exactly one character long");
  }
  const auto size = static_cast<int64_t>(self.as<String>().num_chars);
  const int64_t width = bound.integer(0, 0);
  const int64_t missing = width > size ? width - size : 0;
  const int64_t left = align == Align::left    ? 0
                       : align == Align::right ? missing
                                               : missing / 2 + (missing & width & 1);
  TextBuilder out(in.budget());
  in.budget().check_product(fill.size(), missing);
  in.budget().step(missing);
  out.repeat(fill, left);
  out.append(text);
  out.repeat(fill, missing - left);
  Text made = out.take();
  made.set_markup(text.markup());
  return in.make_string(std::move(made));
}

Value method_zfill(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("zfill", args, {"width"}, 1);
  const Text& text = self.text();
  const auto size = static_cast<int64_t>(self.as<String>().num_chars);
  const int64_t width = bound.integer(0, 0);
  const size_t sign = text.view().starts_with('-') || text.view().starts_with('+') ? 1 : 0;
  TextBuilder out(in.budget());
  out.append(text, 0, sign);
  if (width > size) out.pad('0', width - size, text.all_trusted());
  out.append(text, sign, text.size());
  Text made = out.take();
  made.set_markup(text.markup());
  return in.make_string(std::move(made));
}

Value method_expandtabs(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("expandtabs", args, {"tabsize"});
  const int64_t size = bound.integer(0, 8);
  const Text& text = self.text();
  TextBuilder out(in.budget());
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const auto c = decode_at(text.view(), at);
    in.budget().step();
    if (c.value == '\t') {
      const int64_t spaces = size > 0 ? size - column % size : 0;
      out.pad(' ', spaces, text.trusted(at, at + 1));
      column += spaces;
    } else {
      out.append(text, at, at + c.length);
      column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
    }
    at += c.length;
  }
  Text made = out.take();
  made.set_markup(text.markup());
  return in.make_string(std::move(made));
}

Value method_format(Interpreter& in, const Value& self, Args& args) {
  return format_braces(in, self.text(), args);
}

Value method_format_map(Interpreter& in, const Value& self, Args& args) {
  const Bound bound("format_map", args, {"mapping"}, 1);
  if (!bound[0].is(Kind::dict)) fail("format_map: expected a mapping");
  Args named;
  for (const auto& [key, value] : bound[0].as<Dict>().entries.all()) {
    if (key.is_string()) named.named.emplace_back(key.text(), value);
  }
  return format_braces(in, self.text(), named);
}

}  // namespace

const std::vector<NamedBuiltin>& string_methods() {
  static const std::vector<NamedBuiltin> kTable = {
      {"strip", method_strip<Side::both>},
      {"lstrip", method_strip<Side::left>},
      {"rstrip", method_strip<Side::right>},
      {"upper", method_map<upper_text>},
      {"lower", method_map<lower_text>},
      {"title", method_map<title_text>},
      {"capitalize", method_map<capitalize_text>},
      {"swapcase", method_map<swapcase_text>},
      {"casefold", method_map<casefold_text>},
      {"split", method_split<false>},
      {"rsplit", method_split<true>},
      {"splitlines", method_splitlines},
      {"partition", method_partition<false>},
      {"rpartition", method_partition<true>},
      {"replace", method_replace},
      {"removeprefix", method_remove<false>},
      {"removesuffix", method_remove<true>},
      {"join", method_join},
      {"ljust", method_justify<Align::left>},
      {"rjust", method_justify<Align::right>},
      {"center", method_justify<Align::center>},
      {"zfill", method_zfill},
      {"expandtabs", method_expandtabs},
      {"format", method_format},
      {"format_map", method_format_map},
  };
  return kTable;
}

}  // namespace headrace::jinja
