// Answers the lines of a batch file, several at a time, each independent of the others. Must not
// know the command line or how answers are computed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "api/answer.h"
#include "api/batch_reader.h"
#include "api/prepared_request.h"
#include "api/served_model.h"
#include "base/clock.h"
#include "base/os/append_file.h"
#include "headrace/result.h"

namespace headrace::api {

/// How far a run may read past a line that has no answer yet.
inline constexpr int64_t kMaxBatchLinesAhead = 8192;

struct BatchRunOptions {
  int num_workers = 1;          ///< lines in work at once
  bool in_input_order = false;  ///< else each line is written once it is answered
};

struct BatchCounts {
  int64_t num_answered = 0;  ///< lines written in this run
  int64_t num_failed = 0;    ///< of these, with an error
  int64_t num_skipped = 0;   ///< answered before
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  uint64_t input_bytes = 0;    ///< of the lines that are answered, in this run or before
  uint64_t skipped_bytes = 0;  ///< of these, before
};

struct BatchRunHooks {
  /// Computes one answer; gives up (cancelled) once the function it is given says so. Errors:
  /// overloaded is tried again later. From any thread.
  std::function<Result<Answer>(const PreparedRequest&, const std::function<bool()>&)> answer;
  /// Some ten times a second, on the caller's thread.
  std::function<void(const BatchCounts&)> progress;
  /// Whether to stop. From any thread.
  std::function<bool()> is_interrupted;
};

struct BatchOutcome {
  BatchCounts counts;
  bool was_interrupted = false;
  std::optional<Error> error;        ///< that ended the run before its end
  std::optional<Error> first_fault;  ///< of the server, among the lines' errors
};

/// Reads `reader` to its end. What is wrong with a line is its answer, and ends nothing. What ends
/// the run: reading or writing fails; kMaxFaultsInARow requests in a row fail by faults of the
/// server, as then all others would; an interrupt. Whole lines are in `out` then, and a new run
/// over the same files goes on behind them. Everything is on the disk when this returns.
BatchOutcome run_batch(BatchReader& reader, AppendFile& out, const ServedModel& model,
                       const BatchRunOptions& options, const BatchRunHooks& hooks,
                       const Clock& clock);

inline constexpr int kMaxFaultsInARow = 8;

}  // namespace headrace::api
