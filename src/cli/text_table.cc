// See text_table.h.
#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::cli {

std::string text_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = std::max<size_t>(columns[c].head.size(), 3);
    for (const auto& row : rows) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell_of) {
    std::string text = "|";
    for (size_t c = 0; c < columns.size(); ++c) {
      text += columns[c].is_right ? fmt::format(" {:>{}} |", cell_of(c), widths[c])
                                  : fmt::format(" {:<{}} |", cell_of(c), widths[c]);
    }
    return text + "\n";
  };
  std::string text = line([&](size_t c) { return columns[c].head; });
  text += line([&](size_t c) {
    std::string rule(widths[c], '-');
    if (columns[c].is_right) rule.back() = ':';
    return rule;
  });
  for (const auto& row : rows) text += line([&](size_t c) { return row[c]; });
  return text;
}

std::string figure(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 100 ? 1 : 2);
}

}  // namespace headrace::cli
