// Filters that lay text out: indent, center, truncate, wordwrap, pprint; and the one for XML
// attributes.
#include <algorithm>
#include <cmath>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/number_format.h"
#include "text/chat_template/pretty.h"
#include "text/chat_template/text_ops.h"
#include "text/chat_template/wrap.h"

namespace headrace::jinja {

namespace {

Value filter_center(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("center", args, {"width"});
  const Text text = in.to_text(v, true);
  const auto size = static_cast<int64_t>(count_code_points(text.view()));
  const int64_t width = bound.integer(0, 80);
  const int64_t missing = width > size ? width - size : 0;
  // CPython gives the odd space to the left where the width is odd.
  const int64_t left = missing / 2 + (missing & width & 1);
  TextBuilder out(in.budget());
  out.pad(' ', left, text.all_trusted());
  out.append(text);
  out.pad(' ', missing - left, text.all_trusted());
  Text made = out.take();
  made.set_markup(text.markup());
  return in.make_string(std::move(made));
}

Value filter_indent(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("indent", args, {"width", "first", "blank"});
  const Text& source = need_string(v, "indent");
  Text indention;
  if (bound[0].is_string()) {
    indention = bound[0].text();
  } else {
    TextBuilder spaces(in.budget());
    spaces.pad(' ', bound.integer(0, 4), true);
    indention = spaces.take();
  }
  const bool blank = bound.truth(2, false);
  TextBuilder out(in.budget());
  const auto append_indention = [&] {
    append_escaped_if(out, indention, source.markup() && !indention.markup());
  };
  if (bound.truth(1, false)) append_indention();
  // A newline is added before splitting, so that the text's last line, even if empty, counts.
  Text text = source;
  text.append("\n", true);
  size_t line_number = 0;
  for (const auto& line : split_lines(in.budget(), text)) {
    if (line_number++ > 0) {
      out.append("\n", source.all_trusted());
      if (blank || line.text.end > line.text.begin) append_indention();
    }
    out.append(text, line.text.begin, line.text.end);
  }
  Text made = out.take();
  made.set_markup(source.markup());
  return in.make_string(std::move(made));
}

Value filter_truncate(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("truncate", args, {"length", "killwords", "end", "leeway"});
  const int64_t length = bound.integer(0, 255);
  const Text end = bound.has(2) ? need_string(bound[2], "truncate") : Text("...", true);
  const int64_t leeway = bound[3].is(Kind::none) ? 5 : bound.integer(3, 5);
  const auto end_size = static_cast<int64_t>(count_code_points(end.view()));
  if (length < end_size) {
    fail("truncate: expected length >= " + std::to_string(end_size) + ", found " +
         std::to_string(length));
  }
  if (leeway < 0) fail("truncate: expected leeway >= 0, found " + std::to_string(leeway));
  const int64_t size = in.length(v);
  if (size <= length || size - length <= leeway) return v;
  const Text& text = need_string(v, "truncate");
  size_t cut = byte_offset(text.view(), static_cast<size_t>(length - end_size));
  if (!bound.truth(1, false)) {
    in.budget().step_bytes(cut);
    const size_t space = text.view().substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  TextBuilder out(in.budget());
  const bool markup = text.markup() || end.markup();
  append_escaped_if(out, text.slice(0, cut), markup && !text.markup());
  append_escaped_if(out, end, markup && !end.markup());
  Text made = out.take();
  made.set_markup(markup);
  return in.make_string(std::move(made));
}

Value filter_wordwrap(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("wordwrap", args,
                    {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const Text& text = need_string(v, "wordwrap");
  const Text between = bound[2].is(Kind::none) ? Text("\n", text.all_trusted())
                                               : need_string(bound[2], "wordwrap's wrapstring");
  WrapOptions options;
  options.width = bound.integer(0, options.width);
  options.break_long_words = bound.truth(1, true);
  options.cut_at_hyphens = bound.truth(3, true);
  // Python compares with True here, and takes any true value there.
  options.split_at_hyphens =
      options.cut_at_hyphens && (!bound.has(3) || bound[3].is(Kind::boolean));
  TextBuilder out(in.budget());
  bool first_paragraph = true;
  for (const auto& paragraph : split_lines(in.budget(), text)) {
    if (options.width <= 0) {
      fail("wordwrap: expected a width of at least 1, found " + std::to_string(options.width));
    }
    if (!first_paragraph) out.append(between);
    first_paragraph = false;
    bool first_line = true;
    const size_t start = paragraph.text.begin;
    wrap_paragraph(in.budget(), text.view().substr(start, paragraph.text.end - start), options,
                   [&](size_t begin, size_t end) {
                     if (!first_line) out.append(between);
                     first_line = false;
                     append_escaped_if(out, text.slice(start + begin, start + end),
                                       between.markup());
                   });
  }
  Text made = out.take();
  made.set_markup(between.markup());
  return in.make_string(std::move(made));
}

Value filter_pprint(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("pprint", args, {});
  return in.make_string(pretty_text(in, v));
}

Value filter_xmlattr(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("xmlattr", args, {"autospace"});
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is(Kind::dict)) fail("xmlattr: expected a mapping");
  TextBuilder out(in.budget());
  for (const auto& [key, value] : v.as<Dict>().entries.all()) {
    if (value.is(Kind::none) || value.is_undefined()) continue;
    const Text& name = need_string(key, "xmlattr");
    if (name.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail("xmlattr: invalid character in attribute name");
    }
    if (bound.truth(0, true) || !out.text().empty()) out.append(" ", true);
    append_escaped_if(out, name, !name.markup());
    out.append("=\"", true);
    append_escaped_if(out, in.to_text(value), !(value.is_string() && value.text().markup()));
    out.append("\"", true);
  }
  return in.make_string(out.take());
}

Value filter_filesizeformat(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("filesizeformat", args, {"binary"});
  if (!v.is_number()) fail("filesizeformat: expected a number");
  const bool binary = bound.truth(0, false);
  const double base = binary ? 1024 : 1000;
  const double bytes = v.as_real();
  if (!std::isfinite(bytes)) fail("filesizeformat: expected a finite number");
  std::string out;
  if (bytes == 1) {
    out = "1 Byte";
  } else if (bytes < base) {
    if (bytes < -9e18) fail("filesizeformat: the number is too small");
    out = std::to_string(static_cast<int64_t>(bytes)) + " Bytes";
  } else {
    static constexpr std::string_view kPrefixes = "kMGTPEZY";
    FormatSpec spec;
    spec.type = 'f';
    spec.precision = 1;
    double unit = base * base;
    size_t i = 0;
    for (; i + 1 < kPrefixes.size() && bytes >= unit; ++i) unit *= base;
    const auto number = format_real(base * bytes / unit, spec);
    out = number.sign + number.digits + " ";
    out += binary && i == 0 ? "Ki" : std::string(1, kPrefixes[i]) + (binary ? "i" : "");
    out += "B";
  }
  return in.make_string(std::move(out), !v.tainted());
}

}  // namespace

const std::vector<NamedBuiltin>& layout_filters() {
  static const std::vector<NamedBuiltin> kTable = {
      {"center", filter_center},
      {"indent", filter_indent},
      {"truncate", filter_truncate},
      {"wordwrap", filter_wordwrap},
      {"pprint", filter_pprint},
      {"xmlattr", filter_xmlattr},
      {"filesizeformat", filter_filesizeformat},
  };
  return kTable;
}

}  // namespace headrace::jinja
