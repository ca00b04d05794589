// UTF-8 decoding and categories; see unicode.h. Categories come from utf8proc.
#include "text/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <map>

namespace headrace::text {
namespace {

uint8_t class_of(char32_t code) {
  // White_Space as listed in the Unicode Character Database, PropList.txt.
  if ((code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
      code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
      code == 0x202F || code == 0x205F || code == 0x3000) {
    return kSpace;
  }
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kLetter | kUpper;
    case UTF8PROC_CATEGORY_LL:
      return kLetter | kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunct;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return 0;
  }
}

// The length a lead byte announces and the range its second byte must lie in (Unicode, table 3-7).
struct Lead {
  uint32_t size;
  unsigned char low, high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4, 0x80, 0xBF};
}

}  // namespace

Decoded decode_utf8(const char* p, const char* end) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(p[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.size == 0) return {kReplacement, 1, false};
  char32_t code = first & (0x7FU >> lead.size);
  const auto left = static_cast<size_t>(end - p);
  for (uint32_t i = 1; i < lead.size; ++i) {
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (i >= left || byte(i) < low || byte(i) > high) return {kReplacement, i, false};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  return {code, lead.size, true};
}

size_t incomplete_tail(std::string_view text) {
  const size_t most = text.size() < 3 ? text.size() : 3;
  for (size_t back = 1; back <= most; ++back) {
    const auto first = static_cast<unsigned char>(text[text.size() - back]);
    if ((first & 0xC0) == 0x80) continue;  // a continuation byte: look further back
    const Lead lead = lead_of(first);
    if (lead.size <= back) return 0;
    const Decoded rest = decode_utf8(text.data() + text.size() - back, text.data() + text.size());
    return rest.size == back ? back : 0;  // shorter: already contradicted
  }
  return 0;
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_well_formed(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    if (static_cast<unsigned char>(*p) < 0x80) {
      ++p;
      continue;
    }
    const Decoded c = decode_utf8(p, end);
    if (!c.valid) return false;
    p += c.size;
  }
  return true;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const char* const end = text.data() + text.size();
  const char* copied = text.data();
  for (const char* p = copied; p < end;) {
    const Decoded c = decode_utf8(p, end);
    if (!c.valid) {
      out.append(copied, p);
      append_utf8(out, kReplacement);
      copied = p + c.size;
    }
    p += c.size;
  }
  out.append(copied, end);
  return out;
}

char32_t to_lower(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

bool is_nonspacing_mark(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_MN;
}

bool is_word_character(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO:  // circled and squared letters are alphabetic
      return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
             (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
    default:
      return code == 0x200C || code == 0x200D;
  }
}

bool is_other(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return true;
    default:
      return false;
  }
}

CharTable::CharTable() {
  std::map<std::array<uint8_t, 256>, uint16_t> known;
  for (uint32_t block = 0; block < stage_.size(); ++block) {
    std::array<uint8_t, 256> classes{};
    // Planes 4 to 13 are unassigned and 15 to 16 are for private use: no class, nothing to ask.
    const uint32_t plane = block >> 8;
    if (plane < 4 || plane == 14) {
      for (uint32_t i = 0; i < 256; ++i) classes[i] = class_of((block << 8) | i);
    }
    const auto [entry, is_new] = known.emplace(classes, static_cast<uint16_t>(known.size()));
    if (is_new) blocks_.insert(blocks_.end(), classes.begin(), classes.end());
    stage_[block] = entry->second;
  }
  for (uint32_t i = 0; i < 128; ++i) ascii_[i] = of(i);
}

const CharTable& CharTable::get() {
  static const CharTable table;
  return table;
}

}  // namespace headrace::text
