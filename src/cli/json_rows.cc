// See json_rows.h.
#include "cli/json_rows.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace headrace::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string csv_field(const OrderedJson& value) {
  if (value.is_null()) return "";
  std::string text;
  if (value.is_array()) {
    for (const auto& part : value) {
      text += (text.empty() ? "" : "; ") +
              (part.is_string() ? part.get<std::string>() : json_text(part, -1));
    }
  } else {
    text = value.is_string() ? value.get<std::string>() : json_text(value, -1);
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::pair<std::string_view, std::string_view> split_at(std::string_view text,
                                                       std::string_view mark) {
  const size_t at = text.find(mark);
  HEADRACE_CHECK(at != std::string_view::npos);
  return {text.substr(0, at), text.substr(at + mark.size())};
}

}  // namespace

std::string json_text(const OrderedJson& value, int indent) {
  return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string csv_text(const OrderedJson& rows) {
  std::string text;
  for (const OrderedJson& row : rows) {
    std::string head;
    std::string line;
    for (const auto& [key, value] : row.items()) {
      head += (head.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + csv_field(value);
    }
    if (text.empty()) text = head + "\n";
    text += line + "\n";
  }
  return text;
}

std::string page_text(std::string_view page, std::string_view chart_js, const OrderedJson& rows) {
  // Inside a script element only "<" could end it.
  std::string data;
  for (const char c : json_text(rows, -1)) {
    data += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  // The rows come first in a page, and their names may hold any text: what is left is looked for
  // behind them.
  const auto [before, rest] = split_at(page, "@ROWS@");
  const auto [middle, after] = split_at(rest, "/*CHART_JS*/");
  std::string out;
  for (const std::string_view part : {before, std::string_view(data), middle, chart_js, after}) {
    out += part;
  }
  return out;
}

}  // namespace headrace::cli
