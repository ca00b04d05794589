// Gives the requests of a workload to an engine when they are due, reads all answers and takes down
// when each token came. One thread does all of it. Must not know what the times mean.
#pragma once

#include <cstdint>
#include <functional>

#include "app/load/record.h"
#include "app/load/workload.h"
#include "base/clock.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace {

/// When conversations begin, and when requests reach the engine.
struct LoadPace {
  double rate = 0;           ///< conversations that arrive a second; 0: a closed loop
  int64_t concurrency = 1;   ///< of a closed loop: conversations that are open at once
  int64_t num_requests = 0;  ///< conversations in all; 0: no bound
  double seconds = 0;        ///< nothing begins after; 0: no bound. One of both is set
  /// The next so many requests that wait begin together when all of those before them ended; 0:
  /// each goes to the engine at once.
  int64_t static_batch = 0;
  /// Of such a batch every request is computed on until the longest has ended, as padding; what it
  /// was not asked for is not counted.
  bool pads = false;
  double temperature = 0;  ///< 0: greedy
  int64_t first = 0;       ///< index of the first conversation
};

struct LoadProgress {
  int64_t num_done = 0;  ///< conversations
  int64_t num_tokens = 0;
  double seconds = 0;
};

struct LoadDriverHooks {
  std::function<void(const LoadProgress&)> on_progress;  ///< several times a second
  std::function<bool()> should_stop;                     ///< true ends the load at once
};

/// Runs until every conversation that began has ended. A request that the engine has no room for
/// (overloaded), or that ends with an error, ends its conversation and is taken down. A load that
/// is stopped has the requests that have ended. Errors: what the engine refuses otherwise.
Result<LoadRecords> drive_load(Engine& engine, const LoadWorkload& workload, const LoadPace& pace,
                               const LoadDriverHooks& hooks, const Clock& clock);

}  // namespace headrace
