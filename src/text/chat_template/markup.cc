#include "text/chat_template/markup.h"

#include <charconv>

#include "text/chat_template/unicode.h"

namespace headrace::jinja {

void append_escaped_if(TextBuilder& out, const Text& text, bool escape) {
  if (!escape) {
    out.append(text);
    return;
  }
  text.for_each_run(0, text.size(), [&](size_t begin, size_t end, bool trusted) {
    for (size_t at = begin; at < end;) {
      const size_t special = std::min(text.view().find_first_of("&<>'\"", at), end);
      out.append(text.view().substr(at, special - at), trusted);
      if (special == end) break;
      switch (text.view()[special]) {
        case '&':
          out.append("&amp;", trusted);
          break;
        case '<':
          out.append("&lt;", trusted);
          break;
        case '>':
          out.append("&gt;", trusted);
          break;
        case '\'':
          out.append("&#39;", trusted);
          break;
        default:
          out.append("&#34;", trusted);
      }
      at = special + 1;
    }
  });
}

namespace {

/// The code point of a reference's body ("lt", "#39", "#x27"), or -1.
int32_t reference(std::string_view body) {
  static constexpr std::pair<std::string_view, int32_t> kNames[] = {
      {"amp", '&'},       {"lt", '<'},       {"gt", '>'},       {"quot", '"'},    {"apos", '\''},
      {"nbsp", 0xA0},     {"copy", 0xA9},    {"reg", 0xAE},     {"laquo", 0xAB},  {"raquo", 0xBB},
      {"hellip", 0x2026}, {"mdash", 0x2014}, {"ndash", 0x2013}, {"euro", 0x20AC}, {"lsquo", 0x2018},
      {"rsquo", 0x2019},  {"ldquo", 0x201C}, {"rdquo", 0x201D}};
  if (body.starts_with('#')) {
    body.remove_prefix(1);
    const bool hex = body.starts_with('x') || body.starts_with('X');
    if (hex) body.remove_prefix(1);
    int32_t value = 0;
    const auto done = std::from_chars(body.data(), body.data() + body.size(), value, hex ? 16 : 10);
    if (body.empty() || done.ec != std::errc() || done.ptr != body.data() + body.size()) return -1;
    if (value <= 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0xFFFD;
    return value;
  }
  for (const auto& [name, value] : kNames) {
    if (name == body) return value;
  }
  return -1;
}

}  // namespace

Text unescape_html(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  const auto view = text.view();
  size_t from = 0;
  for (size_t at = 0; (at = view.find('&', at)) != std::string_view::npos;) {
    constexpr size_t kLongest = 12;
    const size_t end = view.substr(at, kLongest).find(';');
    const int32_t value =
        end == std::string_view::npos ? -1 : reference(view.substr(at + 1, end - 1));
    if (value < 0) {
      ++at;
      continue;
    }
    out.append(text, from, at);
    std::string decoded;
    append_utf8(decoded, value);
    out.append(decoded, text.trusted(at, at + end + 1));
    at += end + 1;
    from = at;
  }
  out.append(text, from, text.size());
  return out.take();
}

}  // namespace headrace::jinja
