#include "text/chat_template/string_literal.h"

#include <cstdio>

#include "text/chat_template/fault.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 32);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/// Reads exactly `count` hexadecimal digits at raw[pos], moving pos behind them.
int32_t read_hex(std::string_view raw, size_t& pos, int count, char kind, int line) {
  int64_t value = 0;
  for (int i = 0; i < count; ++i, ++pos) {
    const int digit = pos < raw.size() ? hex_digit(raw[pos]) : -1;
    if (digit < 0) {
      fail(std::string("truncated \\") + kind + " escape: expected " + std::to_string(count) +
               " hexadecimal digits",
           line);
    }
    value = value * 16 + digit;
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    fail(std::string("\\") + kind + " escape is not a character", line);
  }
  return static_cast<int32_t>(value);
}

int32_t read_octal(std::string_view raw, size_t& pos) {
  int32_t value = 0;
  for (int i = 0; i < 3 && pos < raw.size() && raw[pos] >= '0' && raw[pos] <= '7'; ++i, ++pos) {
    value = value * 8 + (raw[pos] - '0');
  }
  return value;
}

/// Jinja encodes non-ASCII characters as escapes before decoding, so a backslash before one leaves
/// that escape's text behind.
void append_escaped_code_point(std::string& out, int32_t c) {
  char buffer[16];
  const char* format = c < 0x100 ? "\\x%02x" : (c < 0x10000 ? "\\u%04x" : "\\U%08x");
  std::snprintf(buffer, sizeof(buffer), format, static_cast<unsigned>(c));
  out += buffer;
}

}  // namespace

std::string unescape_literal(std::string_view raw, int line) {
  std::string out;
  out.reserve(raw.size());
  for (size_t pos = 0; pos < raw.size();) {
    if (raw[pos] != '\\' || pos + 1 >= raw.size()) {
      out.push_back(raw[pos++]);
      continue;
    }
    const char c = raw[pos + 1];
    if (c >= '0' && c <= '7') {
      ++pos;
      append_utf8(out, read_octal(raw, pos));
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      const auto point = decode_at(raw, pos + 1);
      append_escaped_code_point(out, point.value < 0 ? static_cast<unsigned char>(c) : point.value);
      pos += 1 + point.length;
      continue;
    }
    pos += 2;
    switch (c) {
      case '\n':
        break;
      case '\\':
        out.push_back('\\');
        break;
      case '\'':
        out.push_back('\'');
        break;
      case '"':
        out.push_back('"');
        break;
      case 'a':
        out.push_back('\a');
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'v':
        out.push_back('\v');
        break;
      case 'x':
        append_utf8(out, read_hex(raw, pos, 2, 'x', line));
        break;
      case 'u':
        append_utf8(out, read_hex(raw, pos, 4, 'u', line));
        break;
      case 'U':
        append_utf8(out, read_hex(raw, pos, 8, 'U', line));
        break;
      case 'N':
        fail_unsupported("\\N{...} escapes are not supported", line);
      default:
        out.push_back('\\');
        out.push_back(c);
    }
  }
  return out;
}

}  // namespace headrace::jinja
