// Unicode normal forms for tokenizers; see unicode.h. The rules are utf8proc's.
#include <utf8proc.h>

#include <cstdlib>

#include "text/unicode.h"

namespace headrace::text {
namespace {

// True for a character that form C surely keeps wherever it stands. Below U+0300 all do.
bool is_inert(char32_t code) {
  if (code < 0x300) return true;
  if (code >= 0x1160 && code <= 0x11FF) return false;  // Hangul vowels and finals compose
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  const auto category = property->category;
  if (property->combining_class != 0) return false;
  // Marks may be the second part of a composition.
  if (category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_MN) return false;
  const bool canonical = property->decomp_type == 0 && property->decomp_seqindex != UINT16_MAX;
  return !canonical;
}

}  // namespace

bool surely_nfc(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    if (static_cast<unsigned char>(*p) < 0xCC) {  // below U+0300: form C keeps it
      ++p;
      continue;
    }
    const Decoded c = decode_utf8(p, end);
    if (c.valid && !is_inert(c.code)) return false;
    p += c.size;
  }
  return true;
}

std::string to_nfc(std::string_view text) {
  return to_normal_form(text, false, true);
}

std::string to_normal_form(std::string_view text, bool compatibility, bool composed) {
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatibility ? UTF8PROC_COMPAT : 0));
  std::string out;
  const char* const end = text.data() + text.size();
  // utf8proc refuses ill-formed text: normalise the well-formed stretches between.
  for (const char* p = text.data(); p < end;) {
    const char* stop = p;
    Decoded c{};
    while (stop < end && (c = decode_utf8(stop, end)).valid) stop += c.size;
    if (stop > p) {
      utf8proc_uint8_t* made = nullptr;
      const auto size =
          utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(p), stop - p, &made, options);
      if (size >= 0) {
        out.append(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
        std::free(made);
      } else {
        out.append(p, stop);
      }
    }
    if (stop < end) {
      out.append(stop, c.size);
      stop += c.size;
    }
    p = stop;
  }
  return out;
}

void append_decomposed(std::vector<char32_t>& out, char32_t code) {
  utf8proc_int32_t parts[18];  // the longest canonical decomposition has 4 characters
  int boundary = 0;
  const auto n = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code), parts, 18,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary);
  if (n < 0 || n > 18) {
    out.push_back(code);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < n; ++i) out.push_back(static_cast<char32_t>(parts[i]));
}

}  // namespace headrace::text
