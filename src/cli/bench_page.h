// The page of `headrace bench -o html`, made at build time from bench_page.html and Chart.js.
#pragma once

#include <cstddef>

namespace headrace::cli {

/// The page, with "@ROWS@" where the rows belong as JSON.
extern const unsigned char kBenchPage[];
extern const size_t kBenchPageSize;
/// Whether Chart.js was found when Headrace was built.
extern const bool kBenchPageHasChart;

}  // namespace headrace::cli
