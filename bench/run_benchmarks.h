// What the main functions of benchmarks of the backend share.
#pragma once

#include <benchmark/benchmark.h>

#include <string>

#include "base/cpu_features.h"
#include "bench/num_threads.h"

namespace headrace {

/// Runs what `register_all` registers, with the processor and the threads told. Returns the exit
/// status: 2 where an argument is not known.
inline int run_benchmarks(int argc, char** argv, void (*register_all)()) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("cpu", cpu_features().model_name);
  benchmark::AddCustomContext("threads", std::to_string(num_threads()));
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace headrace
