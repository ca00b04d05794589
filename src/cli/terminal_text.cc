// See terminal_text.h.
#include "cli/terminal_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "base/os/terminal.h"

namespace headrace::cli {
namespace {

bool is_dangerous(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:  // C0 and C1 controls
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      break;
  }
  // Bidirectional overrides and isolates can show a name as another one.
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string escaped(utf8proc_int32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  return code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

bool colors_wanted(bool is_terminal) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal && (no_color == nullptr || *no_color == '\0') &&
         !(term != nullptr && std::string_view(term) == "dumb");
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  size_t at = 0;
  while (at < text.size()) {
    if (out.size() >= max_bytes) return out + "...";
    utf8proc_int32_t code = -1;
    const auto left = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - at, 4));
    const auto length = utf8proc_iterate(bytes + at, left, &code);
    if (length <= 0) {
      out += fmt::format("\\x{:02x}", bytes[at]);
      ++at;
      continue;
    }
    if (is_dangerous(code)) {
      out += escaped(code);
    } else {
      out.append(text.substr(at, static_cast<size_t>(length)));
    }
    at += static_cast<size_t>(length);
  }
  return out;
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 would be shown as 1000.0 of the smaller unit.
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string styled(std::string_view text, Style style, bool enabled) {
  if (!enabled) return std::string(text);
  int code = 0;
  switch (style) {
    case Style::bold:
      code = 1;
      break;
    case Style::dim:
      code = 2;
      break;
    case Style::red:
      code = 31;
      break;
    case Style::green:
      code = 32;
      break;
    case Style::yellow:
      code = 33;
      break;
    case Style::cyan:
      code = 36;
      break;
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

bool colors_on_stdout() {
  return colors_wanted(is_terminal(StandardStream::output));
}
bool colors_on_stderr() {
  return colors_wanted(is_terminal(StandardStream::error));
}

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  size_t column = 0;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '\n') {
      out += '\n';
      column = 0;
      ++at;
      const size_t end = std::min(text.find('\n', at), text.size());
      if (at < end && text[at] == ' ') {
        out.append(indent, ' ');
        out += text.substr(at, end - at);
        at = end;
      }
      continue;
    }
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const auto word = text.substr(at, end - at);
    if (column > 0 && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      if (!out.empty()) out.append(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = end;
  }
  return out;
}

}  // namespace headrace::cli
