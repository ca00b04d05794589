// See json_writer.h.
#include "api/json_writer.h"

#include "text/unicode.h"

namespace headrace::api {
namespace {

bool is_plain(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x80 || c == '"' || c == '\\') return false;
  }
  return true;
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::string_view kShort = "\bb\ff\nn\rr\tt\"\"\\\\";
  for (size_t i = 0; i < kShort.size(); i += 2) {
    if (kShort[i] != c) continue;
    out += '\\';
    out += kShort[i + 1];
    return;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  if (is_plain(text)) {
    out += text;
  } else {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      const text::Decoded next = text::decode_utf8(at, end);
      if (!next.valid) {
        out += "\xEF\xBF\xBD";
      } else if (next.size == 1) {
        append_escaped(out, *at);
      } else {
        out.append(at, static_cast<size_t>(next.size));
      }
      at += next.size;
    }
  }
  out += '"';
}

}  // namespace headrace::api
