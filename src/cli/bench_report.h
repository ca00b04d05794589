// The results of a benchmark as text: tables for people, JSON, CSV and a page for machines and
// browsers. Must not know how they were measured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/bench.h"

namespace headrace::cli {

/// What some rows have in common: the model as it was opened.
struct BenchSetting {
  std::string model;  ///< what it is called
  std::string file;   ///< its path
  uint64_t weight_bytes = 0;
  bool is_packed = true;  ///< else weights stay in the file
  int64_t num_parameters = 0;
  std::string cpu;
  std::string isa;      ///< "avx512"
  std::string kernels;  ///< "cpu avx512 (VNNI)"
  int num_threads = 0;
  int num_processors = 0;
  std::string kv_type;
  int64_t chunk_tokens = 0;
  double peak_macs_per_second = 0;
  std::string peak_instruction;
};

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

/// Whether this build can make the page: Chart.js is put in when Headrace is built.
bool has_bench_page();

}  // namespace headrace::cli
