// See sse.h.
#include "api/sse.h"

namespace headrace::api {
namespace {

constexpr std::string_view kLineEnds = "\r\n";

/// Cuts the first line off `text`; whether there is another one behind it.
bool next_line(std::string_view& text, std::string_view& line) {
  const size_t end = text.find_first_of(kLineEnds);
  line = text.substr(0, end);
  if (end == std::string_view::npos) return false;
  const size_t width = text.substr(end, 2) == kLineEnds ? 2 : 1;
  text.remove_prefix(end + width);
  return true;
}

}  // namespace

void append_sse(std::string& out, std::string_view event_name, std::string_view data) {
  std::string_view line;
  if (!event_name.empty()) {
    next_line(event_name, line);
    out.append("event: ").append(line).append("\n");
  }
  bool goes_on = true;
  while (goes_on) {
    goes_on = next_line(data, line);
    out.append("data: ").append(line).append("\n");
  }
  out += '\n';
}

void append_sse_comment(std::string& out) {
  out += ":\n\n";
}

}  // namespace headrace::api
