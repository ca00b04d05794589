// The input of a batch run: line by line, without those that are answered. Must not know the
// engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/answered_lines.h"
#include "api/batch_line.h"
#include "api/digest.h"
#include "base/os/input_stream.h"
#include "headrace/result.h"

namespace headrace::api {

class BatchReader {
 public:
  /// `answered` must outlive it.
  BatchReader(InputStream in, const RequestLimits& limits, AnsweredLines& answered);

  /// The next line to answer, which may be one with an error; nothing at the end. Empty lines are
  /// passed over. A custom_id that an earlier line has is an error of the later one. Errors: those
  /// of reading.
  Result<std::optional<BatchLine>> next();

  /// Lines passed over since they are answered.
  int64_t num_skipped() const { return num_skipped_; }
  uint64_t bytes() const { return in_.line_bytes(); }
  uint64_t skipped_bytes() const { return skipped_bytes_; }

 private:
  bool skip_answered(const Digest& key);

  InputStream in_;
  const RequestLimits limits_;
  AnsweredLines& answered_;
  DigestSet custom_ids_;
  std::string text_;
  int64_t number_ = 0;
  int64_t num_skipped_ = 0;
  uint64_t skipped_bytes_ = 0;
};

/// Whether each of the answers is one to a line of `in`, of which no more is read than is needed.
/// `answered` is as before. Errors: those of reading; mismatch, where answers are left over: they
/// are those of another input, or it was changed.
Result<void> check_answers_of(InputStream in, const RequestLimits& limits, AnsweredLines& answered);

}  // namespace headrace::api
