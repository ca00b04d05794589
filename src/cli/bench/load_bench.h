// Runs `headrace bench --load`.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/bench/bench_output.h"
#include "cli/bench/bench_setting.h"
#include "cli/bench/load_options.h"
#include "headrace/result.h"

namespace headrace::cli {

/// Measures every plan with every model and writes the results. `repetitions`: of the tests that
/// the ideal is made of; 0: there is none. Returns an exit code.
Result<int> run_load_bench(const BenchModelArgs& model, const std::vector<LoadPlan>& plans,
                           int64_t repetitions, const BenchOutputArgs& output);

}  // namespace headrace::cli
