// The results of loads as text: tables for people, JSON, CSV and a page for machines and browsers.
// Must not know how they were measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/load/load.h"
#include "cli/bench/bench_setting.h"

namespace headrace::cli {

struct LoadEntry {
  std::shared_ptr<const BenchSetting> setting;
  LoadResult result;
};

/// Aligned Markdown tables: throughput, latencies, the engine, and the rates of the ideal.
std::string load_markdown(const std::vector<LoadEntry>& entries);

/// An array with an object a load: figures under fixed keys, then percentiles, the course of time
/// and every request.
std::string load_json(const std::vector<LoadEntry>& entries);

/// The figures alone.
std::string load_csv(const std::vector<LoadEntry>& entries);

/// One HTML file with everything in it.
std::string load_html(const std::vector<LoadEntry>& entries);

/// Loads of the same requests on the same kernels whose answers differ: a sentence for each, none
/// where all is well.
std::vector<std::string> differing_answers(const std::vector<LoadEntry>& entries);

}  // namespace headrace::cli
