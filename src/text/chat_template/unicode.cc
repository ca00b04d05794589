#include "text/chat_template/unicode.h"

#include <utf8proc.h>

namespace headrace::jinja {

CodePoint decode_at(std::string_view text, size_t pos) {
  const auto first = static_cast<unsigned char>(text[pos]);
  if (first < 0x80) return {first, 1};
  utf8proc_int32_t value = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + pos),
                                       static_cast<utf8proc_ssize_t>(text.size() - pos), &value);
  if (length <= 0) return {-1, 1};
  return {value, static_cast<uint32_t>(length)};
}

size_t previous_start(std::string_view text, size_t pos) {
  for (size_t back = 1; back <= 4 && back <= pos; ++back) {
    if ((static_cast<unsigned char>(text[pos - back]) & 0xC0) == 0x80) continue;
    return decode_at(text, pos - back).length == back ? pos - back : pos - 1;
  }
  return pos - 1;
}

size_t count_code_points(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size() && static_cast<signed char>(text[pos]) >= 0) ++pos;
  size_t count = pos;
  for (; pos < text.size(); pos += decode_at(text, pos).length) ++count;
  return count;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t pos = 0;
  for (; index > 0 && pos < text.size(); --index) pos += decode_at(text, pos).length;
  return pos;
}

void append_utf8(std::string& out, int32_t code_point) {
  utf8proc_uint8_t buffer[4];
  const auto length = utf8proc_encode_char(code_point, buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(length));
}

bool is_space(int32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_line_break(int32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

namespace {

int category(int32_t c) {
  return c < 0 ? static_cast<int>(UTF8PROC_CATEGORY_CN) : static_cast<int>(utf8proc_category(c));
}

}  // namespace

bool is_alpha(int32_t c) {
  if (c >= 0 && c < 128) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const int k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(int32_t c) {
  if (c >= 0 && c < 128) return c >= '0' && c <= '9';
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(int32_t c) {
  // Beside decimals: superscripts, subscripts, circled and parenthesised digits.
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490);
}

bool is_numeric(int32_t c) {
  if (is_digit(c)) return true;
  const int k = category(c);
  return c >= 128 && (k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO);
}

bool is_alnum(int32_t c) {
  return is_alpha(c) || is_numeric(c);
}

bool is_upper(int32_t c) {
  if (c >= 0 && c < 128) return c >= 'A' && c <= 'Z';
  return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216F) ||
         (c >= 0x24B6 && c <= 0x24CF);
}

bool is_lower(int32_t c) {
  if (c >= 0 && c < 128) return c >= 'a' && c <= 'z';
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA ||
         (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9);
}

bool is_title(int32_t c) {
  return c >= 128 && category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_printable(int32_t c) {
  if (c >= 0 && c < 128) return c >= 32 && c < 127;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

namespace {

// The common entries of Unicode's SpecialCasing.txt, whose mappings are longer than one code point.
const char* special_case(int32_t c, Case how) {
  const bool upper = how == Case::upper;
  if (how == Case::upper || how == Case::title) {
    switch (c) {
      case 0xDF:
        return upper ? "SS" : "Ss";
      case 0x149:
        return "\xCA\xBCN";
      case 0x1F0:
        return "J\xCC\x8C";
      case 0xFB00:
        return upper ? "FF" : "Ff";
      case 0xFB01:
        return upper ? "FI" : "Fi";
      case 0xFB02:
        return upper ? "FL" : "Fl";
      case 0xFB03:
        return upper ? "FFI" : "Ffi";
      case 0xFB04:
        return upper ? "FFL" : "Ffl";
      case 0xFB05:
      case 0xFB06:
        return upper ? "ST" : "St";
      default:
        return nullptr;
    }
  }
  if (c == 0x130) return "i\xCC\x87";
  if (how == Case::fold) {
    switch (c) {
      case 0xDF:
      case 0x1E9E:
        return "ss";
      case 0xFB00:
        return "ff";
      case 0xFB01:
        return "fi";
      case 0xFB02:
        return "fl";
      case 0xFB03:
        return "ffi";
      case 0xFB04:
        return "ffl";
      case 0xFB05:
      case 0xFB06:
        return "st";
      case 0x3C2:
        return "\xCF\x83";
      default:
        return nullptr;
    }
  }
  return nullptr;
}

}  // namespace

void append_case(std::string& out, int32_t c, Case how) {
  if (c >= 0 && c < 128) {
    const bool up = how == Case::upper || how == Case::title;
    if (up && c >= 'a' && c <= 'z') c -= 32;
    if (!up && c >= 'A' && c <= 'Z') c += 32;
    out.push_back(static_cast<char>(c));
    return;
  }
  if (const char* special = special_case(c, how)) {
    out += special;
    return;
  }
  switch (how) {
    case Case::upper:
      c = utf8proc_toupper(c);
      break;
    case Case::title:
      c = utf8proc_totitle(c);
      break;
    case Case::lower:
    case Case::fold:
      c = utf8proc_tolower(c);
      break;
  }
  append_utf8(out, c);
}

}  // namespace headrace::jinja
