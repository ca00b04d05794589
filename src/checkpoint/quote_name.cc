// See quote_name.h.
#include "checkpoint/quote_name.h"

namespace headrace {

std::string quote_name(std::string_view text) {
  constexpr size_t kLongest = 80;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "'";
  for (const char letter : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte < 0x7f) {
      out += letter;
    } else {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  if (text.size() > kLongest) out += "...";
  return out + "'";
}

}  // namespace headrace
