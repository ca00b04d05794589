// The engine in a world of its own: virtual time, the checksum model, a seeded workload with
// arrivals, cancels, deadlines, priorities, several choices, conversations and faults. For tests
// and tools/simulate; a seed replays exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "headrace/stats.h"

namespace headrace {

struct SimulationOptions {
  uint64_t seed = 0;
  int64_t num_requests = 1000;
  bool with_faults = true;  ///< steps that fail, requests that nobody can serve, bad logits
  /// Choices are made by these bytes as long as they last, then by the seed: for fuzzing.
  std::span<const uint8_t> choices{};
  /// Makes the n-th allocation from now on fail (-1: none). Empty: memory never runs out.
  std::function<void(int64_t n)> fail_allocation{};
  /// Where session files are written; their names begin with the seed. Empty: there are none.
  std::string session_folder{};
};

struct SimulationResult {
  std::string fault;  ///< empty: everything was as it should be
  EngineStats stats;
  int64_t num_steps = 0;
  int64_t num_finished = 0;  ///< choices that ended by themselves, with the right tokens
  int64_t num_cancelled = 0;
  int64_t num_expired = 0;
  int64_t num_failed = 0;
  int64_t num_refused = 0;
  int64_t num_sessions = 0;  ///< loaded from files
};

/// Runs one seed to its end. Faults that it looks for: a token, score or ending that is not the
/// checksum model's; an event after the last; a broken invariant; an error that nothing explains;
/// steps without progress; blocks, places or prefixes that are not accounted for at the end.
SimulationResult simulate(const SimulationOptions& options);

}  // namespace headrace
