// Measures an opened model: prompts, decoding, decoding at depth and in parallel, and the machine's
// limits in the same run. Must not know how figures are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/bench_plan.h"
#include "app/bench_sample.h"
#include "app/open_model.h"
#include "headrace/result.h"

namespace headrace {

/// Rates are tokens a second over all sequences.
struct BenchRow {
  BenchTest test;
  std::vector<double> samples;  ///< one a repetition, in order
  SampleSummary rate;
  double bound = 0;                  ///< what the machine's limits allow
  bool is_bound_by_compute = false;  ///< else by reading memory
  double bytes_per_token = 0;        ///< that must be read
  double macs_per_token = 0;
  uint64_t read_bytes = 0;  ///< the size that reading was measured with
  double read_bytes_per_second = 0;
  std::vector<std::string> unsteady;  ///< reasons; empty: steady

  double fraction_of_bound() const { return rate.median / bound; }
  /// Then the bound is wrong: nothing is faster than the machine.
  bool is_above_bound() const { return rate.max > bound; }
};

struct BenchResult {
  std::vector<BenchRow> rows;
  double peak_macs_per_second = 0;
  std::string peak_instruction;
};

struct BenchProgress {
  std::string test;
  std::string stage;  ///< "limits of the machine", "filling", "warming up", "3 of 5"
};

struct BenchHooks {
  std::function<void(const BenchProgress&)> on_progress;  ///< before each stage
  /// Asked before each stage and each step of decoding; true ends the benchmark (cancelled).
  std::function<bool()> should_stop;
};

/// Runs the tests, each with a warm-up and `repetitions` measurements. The model must have been
/// opened so that check_bench_fits() holds. Errors: resource_exhausted (memory), internal (logits
/// that are no numbers), cancelled.
Result<BenchResult> run_bench(const OpenedModel& model, const std::vector<BenchTest>& tests,
                              int64_t repetitions, const BenchHooks& hooks);

}  // namespace headrace
