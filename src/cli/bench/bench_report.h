// The results of a benchmark as text: tables for people, JSON, CSV and a page for machines and
// browsers. Must not know how they were measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/bench.h"
#include "cli/bench/bench_setting.h"

namespace headrace::cli {

struct BenchEntry {
  std::shared_ptr<const BenchSetting> setting;
  BenchRow row;
};

/// Aligned Markdown tables, also for a terminal: columns that differ between rows, then figures.
/// Strings of the model are printable in it.
std::string bench_markdown(const std::vector<BenchEntry>& entries);

/// An array with an object a row, the keys in a fixed order, and a line end.
std::string bench_json(const std::vector<BenchEntry>& entries);

/// The same keys as the head line, then a line a row; quoted as RFC 4180 says.
std::string bench_csv(const std::vector<BenchEntry>& entries);

/// One HTML file with everything in it: a roofline, bars and a table.
std::string bench_html(const std::vector<BenchEntry>& entries);

}  // namespace headrace::cli
