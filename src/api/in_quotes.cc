// See in_quotes.h.
#include "api/in_quotes.h"

#include "text/unicode.h"

namespace headrace::api {

std::string shortened(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text::replace_invalid(text);
  std::string_view begin = text.substr(0, max_bytes);
  begin.remove_suffix(text::incomplete_tail(begin));
  return text::replace_invalid(begin) + "...";
}

std::string in_quotes(std::string_view text, size_t max_bytes) {
  return '"' + shortened(text, max_bytes) + '"';
}

}  // namespace headrace::api
