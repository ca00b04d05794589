// See batch_reader.h.
#include "api/batch_reader.h"

#include <utility>

#include "api/batch_run.h"

namespace headrace::api {

BatchReader::BatchReader(InputStream in, const RequestLimits& limits, AnsweredLines& answered)
    : in_(std::move(in)), limits_(limits), answered_(answered) {}

bool BatchReader::skip_answered(const Digest& key) {
  const auto taken = answered_.take(key);
  if (!taken) return false;
  if (taken->has_custom_id) custom_ids_.insert(taken->custom_id);
  ++num_skipped_;
  skipped_bytes_ = bytes();
  return true;
}

Result<std::optional<BatchLine>> BatchReader::next() {
  for (;;) {
    HEADRACE_ASSIGN(const auto outcome, in_.read_line(text_, limits_.max_body_bytes));
    if (outcome == InputStream::Line::none) return std::optional<BatchLine>();
    ++number_;
    if (text_.find_first_not_of(" \t\r") == std::string::npos) continue;
    // Before parsing: most of a long file may be answered.
    if (skip_answered(digest_of(text_))) continue;
    BatchLine line =
        parse_batch_line(text_, number_, outcome == InputStream::Line::too_long, limits_);
    if (line.custom_id && !custom_ids_.insert(digest_of(*line.custom_id))) {
      mark_as_duplicate(line);
      if (skip_answered(line.key)) continue;
    }
    return std::optional<BatchLine>(std::move(line));
  }
}

Result<void> check_answers_of(InputStream in, const RequestLimits& limits,
                              AnsweredLines& answered) {
  // Lines are answered in another order, but never far from it: where none is found there, none is.
  int64_t num_unanswered = 0;
  BatchReader reader(std::move(in), limits, answered);
  while (answered.num_left() > 0) {
    HEADRACE_ASSIGN(const auto line, reader.next());
    if (!line) break;
    ++num_unanswered;
    if (reader.num_skipped() == 0 && num_unanswered > 2 * kMaxBatchLinesAhead) break;
  }
  const int64_t num_left = answered.num_left();
  answered.reset();
  if (num_left == 0) return {};
  return Error{ErrorCode::mismatch,
               std::to_string(num_left) + " of its " + std::to_string(answered.num_lines()) +
                   " answers are to requests that are not in the input, or were changed there",
               "", ""};
}

}  // namespace headrace::api
