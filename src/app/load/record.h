// What a load leaves behind: a record of each request, and one of each step of the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/result.h"
#include "headrace/stats.h"

namespace headrace {

/// One request. Times are nanoseconds since the load began.
struct LoadRecord {
  int64_t conversation = 0;
  int64_t turn = 0;
  int64_t prompt_tokens = 0;
  int64_t wanted_tokens = 0;
  int64_t due_ns = 0;             ///< when it arrived; its latencies count from here
  int64_t submitted_ns = 0;       ///< when the engine got it
  std::vector<int64_t> token_ns;  ///< when each token could be read
  int64_t end_ns = 0;
  RequestStats stats;              ///< if it ended without an error
  std::optional<ErrorCode> error;  ///< why it ended, else
  uint64_t answer_hash = 0;        ///< of its tokens

  bool is_ok() const { return !error.has_value(); }
  double ttft_ms() const { return 1e-6 * static_cast<double>(token_ns.front() - due_ns); }
  double e2e_ms() const { return 1e-6 * static_cast<double>(end_ns - due_ns); }
  /// From its arrival until the engine began it.
  double queue_ms() const {
    return 1e-6 * static_cast<double>(submitted_ns - due_ns) + stats.queue_ms;
  }
  /// A token after the first, on average; of at least two.
  double tpot_ms() const {
    return 1e-6 * static_cast<double>(token_ns.back() - token_ns.front()) /
           static_cast<double>(token_ns.size() - 1);
  }
};

/// The engine after a step, or more than one where the reader was late.
struct LoadSample {
  int64_t ns = 0;  ///< since the load began
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_held_back = 0;  ///< arrived, and not given to the engine yet
  int64_t num_steps = 0;      ///< since the sample before
  int64_t num_rows = 0;       ///< that these computed
  int64_t num_tokens = 0;     ///< that these gave
  int64_t num_first = 0;      ///< of these, first ones of a request
  double kv_usage = 0;
  double slot_utilisation = 1;
};

/// All of one load.
struct LoadRecords {
  std::vector<LoadRecord> requests;  ///< in the order in which they were given to the engine
  std::vector<LoadSample> samples;
  EngineStats before;
  EngineStats after;
  uint64_t fingerprint = 0;  ///< of the conversations that began
  int64_t num_conversations = 0;
  bool was_stopped = false;    ///< what had not ended then is left out
  double reading_seconds = 0;  ///< that the load itself took, on a thread beside the engine's
};

}  // namespace headrace
