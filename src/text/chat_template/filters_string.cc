// Filters that turn one string into another.
#include <algorithm>

#include "text/chat_template/format.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/json.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/text_ops.h"

namespace headrace::jinja {

namespace {

Value filter_string(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("string", args, {});
  return v.is_string() ? v : in.make_string(in.to_text(v));
}

Value filter_upper(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("upper", args, {});
  return in.make_string(upper_text(in.budget(), in.to_text(v, true)));
}

Value filter_lower(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("lower", args, {});
  return in.make_string(lower_text(in.budget(), in.to_text(v, true)));
}

Value filter_capitalize(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("capitalize", args, {});
  return in.make_string(capitalize_text(in.budget(), in.to_text(v, true)));
}

Value filter_title(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("title", args, {});
  bool at_start = true;
  Text out =
      map_code_points(in.budget(), in.to_text(v), [&](std::string& piece, int32_t c, size_t) {
        append_case(piece, c, at_start ? Case::upper : Case::lower);
        at_start = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
      });
  return in.make_string(std::move(out));
}

Value filter_trim(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("trim", args, {"chars"});
  const Text text = in.to_text(v, true);
  const bool has_chars = bound.has(0) && !bound[0].is(Kind::none);
  const Span span =
      stripped(in.budget(), text, has_chars ? &need_string(bound[0], "trim") : nullptr, Side::both);
  return in.make_string(text.slice(span.begin, span.end));
}

Value filter_replace(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("replace", args, {"old", "new", "count"}, 2);
  const int64_t count = bound[2].is(Kind::none) ? -1 : bound.integer(2, -1);
  return in.make_string(
      replace_text(in.budget(), in.to_text(v), in.to_text(bound[0]), in.to_text(bound[1]), count));
}

Value escaped(Interpreter& in, const Value& v, bool again) {
  if (v.is_string() && v.text().markup() && !again) return v;
  TextBuilder out(in.budget());
  append_escaped_if(out, in.to_text(v), true);
  Text text = out.take();
  text.set_markup(true);
  return in.make_string(std::move(text));
}

Value filter_escape(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("escape", args, {});
  return escaped(in, v, false);
}

Value filter_forceescape(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("forceescape", args, {});
  return escaped(in, v, true);
}

Value filter_safe(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("safe", args, {});
  Text text = in.to_text(v);
  text.set_markup(true);
  return in.make_string(std::move(text));
}

Value filter_format(Interpreter& in, const Value& v, Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("format: cannot handle positional and keyword arguments at the same time");
  }
  const Text format = in.to_text(v, true);
  if (args.named.empty()) return format_percent(in, format, in.make_tuple(args.positional));
  Entries entries;
  for (const auto& [name, value] : args.named) entries.set(in.make_string(name), value);
  return format_percent(in, format, in.make_dict(std::move(entries)));
}

Value filter_tojson(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  DumpOptions options;
  options.ensure_ascii = bound.truth(0, false);
  options.sort_keys = bound.truth(3, false);
  options.item_separator = ", ";
  options.key_separator = ": ";
  std::string indent;
  if (!bound[1].is(Kind::none)) {
    options.has_indent = true;
    options.item_separator = ",";
    if (bound[1].is_string()) {
      indent = bound[1].view();
      options.trusted = bound[1].text().all_trusted();
    } else {
      constexpr int64_t kMaxIndent = 1000;
      const int64_t width = std::max<int64_t>(0, need_int(bound[1], "tojson's indent"));
      if (width > kMaxIndent) fail_limit("tojson: an indent over 1000");
      indent.assign(static_cast<size_t>(width), ' ');
    }
    options.indent = indent;
  }
  if (!bound[2].is(Kind::none)) {
    const auto* pair = bound[2].is_sequence() ? &bound[2].as<Sequence>().items : nullptr;
    if (pair == nullptr || pair->size() != 2) fail("tojson: separators must be a pair of strings");
    const Text& between = need_string((*pair)[0], "tojson's separators");
    const Text& after_key = need_string((*pair)[1], "tojson's separators");
    options.item_separator = between.view();
    options.key_separator = after_key.view();
    options.trusted = options.trusted && between.all_trusted() && after_key.all_trusted();
  }
  return in.make_string(to_json(in, v, options));
}

void quote_url(TextBuilder& out, const Text& text, bool for_query) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  text.for_each_run(0, text.size(), [&](size_t begin, size_t end, bool trusted) {
    std::string quoted;
    for (size_t at = begin; at < end; ++at) {
      const auto c = static_cast<unsigned char>(text.view()[at]);
      const bool plain = (c < 0x80 && (is_alpha(c) || is_decimal(c))) || c == '_' || c == '.' ||
                         c == '-' || c == '~' || (c == '/' && !for_query);
      if (plain) {
        quoted.push_back(static_cast<char>(c));
      } else if (c == ' ' && for_query) {
        quoted.push_back('+');
      } else {
        quoted += {'%', kHex[c >> 4], kHex[c & 15]};
      }
    }
    out.append(quoted, trusted);
  });
}

Value filter_urlencode(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("urlencode", args, {});
  TextBuilder out(in.budget());
  const bool iterable = v.is_sequence() || v.is(Kind::dict) || v.is(Kind::view) ||
                        v.is(Kind::iterator) || v.is(Kind::range) || v.is_undefined();
  if (!iterable) {
    quote_url(out, in.to_text(v), false);
    return in.make_string(out.take());
  }
  const Value pairs = v.is(Kind::dict) ? in.make_view(View::What::items, v) : v;
  bool first = true;
  for (const auto& pair : in.iterate(pairs)) {
    const auto both = in.iterate(pair);
    if (both.size() != 2) fail("urlencode: expected pairs");
    if (!first) out.append("&", true);
    first = false;
    quote_url(out, in.to_text(both[0]), true);
    out.append("=", true);
    quote_url(out, in.to_text(both[1]), true);
  }
  return in.make_string(out.take());
}

/// Copies what lies outside of open...close; an opening without an end stays.
Text without_between(Budget& budget, const Text& text, std::string_view open,
                     std::string_view close) {
  TextBuilder out(budget);
  size_t from = 0;
  while (true) {
    const size_t begin = text.view().find(open, from);
    const size_t end = begin == std::string_view::npos ? begin : text.view().find(close, begin);
    if (end == std::string_view::npos) break;
    out.append(text, from, begin);
    from = end + close.size();
  }
  out.append(text, from, text.size());
  return out.take();
}

Value filter_striptags(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("striptags", args, {});
  auto& budget = in.budget();
  Text text = without_between(budget, in.to_text(v), "<!--", "-->");
  text = without_between(budget, text, "<", ">");
  TextBuilder joined(budget);
  for (const auto& word : split_text(budget, text, nullptr, -1, false)) {
    if (!joined.text().empty()) joined.append(" ", text.all_trusted());
    joined.append(text, word.begin, word.end);
  }
  return in.make_string(unescape_html(budget, joined.text()));
}

Value filter_wordcount(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("wordcount", args, {});
  const Text text = in.to_text(v);
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const auto c = decode_at(text.view(), at);
    const bool word = is_word(c.value);
    count += word && !in_word ? 1 : 0;
    in_word = word;
    at += c.length;
  }
  return Value::integer(count);
}

}  // namespace

const std::vector<NamedBuiltin>& string_filters() {
  static const std::vector<NamedBuiltin> kTable = {
      {"string", filter_string},
      {"upper", filter_upper},
      {"lower", filter_lower},
      {"capitalize", filter_capitalize},
      {"title", filter_title},
      {"trim", filter_trim},
      {"replace", filter_replace},
      {"escape", filter_escape},
      {"e", filter_escape},
      {"forceescape", filter_forceescape},
      {"safe", filter_safe},
      {"format", filter_format},
      {"tojson", filter_tojson},
      {"urlencode", filter_urlencode},
      {"striptags", filter_striptags},
      {"wordcount", filter_wordcount},
  };
  return kTable;
}

}  // namespace headrace::jinja
