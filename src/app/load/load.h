// A load on an opened model: a workload, an engine of its own, and what came of it, beside the
// speed that the model reaches without requests. Must not know how figures are shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/bench.h"
#include "app/load/driver.h"
#include "app/load/rates.h"
#include "app/load/slo.h"
#include "app/load/summary.h"
#include "app/load/workload.h"
#include "app/open_model.h"
#include "headrace/result.h"

namespace headrace {

enum class LoadBatching {
  continuous,    ///< a request begins when there is a place
  static_batch,  ///< batches of max_sequences, each after the end of the one before
  padded,        ///< the same, where all of a batch are computed until its longest has ended
};

/// "continuous", "static", "padded".
std::string load_batching_name(LoadBatching batching);

struct LoadPlan {
  LoadSpec spec;
  LoadPace pace;  ///< `first`, `static_batch` and `pads` are run_load()'s to set
  LoadBatching batching = LoadBatching::continuous;
  LoadSlo slo;
  int64_t num_warm_up = 0;  ///< requests before those that count, with nothing in common with them
  int64_t max_sequences = 1;
  uint64_t kv_bytes = 0;  ///< 0: the longest conversations of all sequences fit at once
  bool prefix_cache = true;
  int64_t max_wait_ms = 0;
  double max_slowdown = 0;

  /// The most requests that can generate at once.
  int64_t max_batch() const;
};

/// "rate 4", "concurrency 16", "concurrency 16 static", "concurrency 16 padded".
std::string load_name(const LoadPlan& plan);

/// Whether the plans, and the tests of their rates, fit the model's context and the memory. `needs`
/// as for check_bench_fits(). Errors: context_length_exceeded, resource_exhausted, with the sums.
Result<void> check_load_fits(const std::vector<LoadPlan>& plans, const ModelConfig& config,
                             const MemoryNeeds& needs, uint64_t available_bytes);

/// What the same work takes at the speed of app/bench: no scheduler, no mixed steps.
struct LoadIdeal {
  std::shared_ptr<const std::vector<BenchRow>> rows;  ///< the tests
  LoadWork work;
  int64_t batch = 1;              ///< that all is decoded by at once
  double seconds = 0;             ///< at that batch
  double seconds_of_batches = 0;  ///< at the batches that the steps had
  double bound_seconds = 0;       ///< at that batch, at the bounds of the tests
};

struct LoadResult {
  LoadPlan plan;
  LoadSummary summary;
  std::vector<LoadRecord> requests;
  uint64_t fingerprint = 0;  ///< of the workload
  int64_t num_conversations = 0;
  int64_t kv_tokens = 0;  ///< that the largest cache group holds
  uint64_t kv_bytes = 0;
  std::optional<LoadIdeal> ideal;
  double processor_seconds = 0;       ///< of all threads of the process, during the load
  std::vector<std::string> unsteady;  ///< reasons; empty: steady
  bool was_interrupted = false;       ///< only what had ended by then is in it

  /// Ideal over measured time; only with `ideal`.
  double fraction_of_ideal() const { return ideal->seconds / summary.occupied_seconds; }
  double fraction_of_bound() const { return ideal->bound_seconds / summary.occupied_seconds; }
  double fraction_at_its_batches() const {
    return ideal->seconds_of_batches / summary.occupied_seconds;
  }
};

/// Runs a plan on an engine of its own. `rates`: rows of the plan's rate_tests(), or null. The
/// model must have been opened so that check_load_fits() holds. Errors: resource_exhausted,
/// context_length_exceeded (kv_bytes is too small for a conversation), those of drive_load();
/// cancelled, where it was interrupted before any request had ended.
Result<LoadResult> run_load(OpenedModel& model, const LoadPlan& plan,
                            std::shared_ptr<const std::vector<BenchRow>> rates,
                            const BenchHooks& hooks);

}  // namespace headrace
