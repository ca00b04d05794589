// The pages of `headrace bench -o html`, made at build time from *_page.html, page.css and page.js.
#pragma once

#include <cstddef>

namespace headrace::cli {

/// Made by cmake/bench_pages.cmake. In a page stands "/*CHART_JS*/" where Chart.js belongs, and
/// "@ROWS@" where the rows belong as JSON.
extern const unsigned char kBenchPage[];
extern const size_t kBenchPageSize;
extern const unsigned char kLoadPage[];
extern const size_t kLoadPageSize;
extern const unsigned char kChartJs[];
extern const size_t kChartJsSize;
/// Whether Chart.js was found when Headrace was built.
extern const bool kBenchPageHasChart;

}  // namespace headrace::cli
