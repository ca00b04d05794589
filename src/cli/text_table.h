// Aligned Markdown tables, also for a terminal.
#pragma once

#include <string>
#include <vector>

namespace headrace::cli {

struct TableColumn {
  std::string head;
  bool is_right = true;  ///< figures; else words
};

/// Cells are printable, a row has one a column.
std::string text_table(const std::vector<TableColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

/// Three digits that count, as people write them.
std::string figure(double value);

}  // namespace headrace::cli
