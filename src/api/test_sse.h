// A reader of server-sent events for tests, after the format's own rules for readers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::api {

struct SseEvent {
  std::string name;
  std::string data;
};

inline std::vector<SseEvent> read_sse(std::string_view bytes) {
  std::vector<SseEvent> events;
  SseEvent event;
  bool has_data = false;
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) break;  // a line without its end is none yet
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end + (bytes.substr(end, 2) == "\r\n" ? 2 : 1));
    if (line.empty()) {
      if (has_data) events.push_back(event);
      event = {};
      has_data = false;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == 0) continue;
    const std::string_view name = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (name == "event") event.name = value;
    if (name == "data") {
      event.data += (has_data ? "\n" : "") + std::string(value);
      has_data = true;
    }
  }
  return events;
}

}  // namespace headrace::api
