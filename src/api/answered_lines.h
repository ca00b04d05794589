// Which lines of a batch file have their answer already. Must not know the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/batch_line.h"
#include "api/digest.h"
#include "api/served_model.h"
#include "base/os/input_stream.h"
#include "headrace/result.h"

namespace headrace::api {

class AnsweredLines {
 public:
  /// None.
  AnsweredLines() = default;
  /// Reads a file of answers from its beginning. A last line without a line end was cut while it
  /// was written, and does not count. Errors: those of reading; mismatch, where a line is none of
  /// ours, or another model wrote it: neither this one nor one of its adapters.
  static Result<AnsweredLines> read(InputStream& file, const ServedModel& model);

  struct Taken {
    Digest custom_id{};  ///< digest_of() it
    bool has_custom_id = false;
  };
  /// Whether a line of this key has an answer; each answer is for one line only.
  std::optional<Taken> take(const Digest& key);
  /// Nothing was taken.
  void reset();

  int64_t num_lines() const { return static_cast<int64_t>(entries_.size()); }
  int64_t num_left() const { return num_left_; }
  int64_t num_failed() const { return num_failed_; }
  /// Of the whole lines.
  uint64_t whole_bytes() const { return whole_bytes_; }
  /// Other settings than ours that answers were made with, but for the model; empty: none.
  const std::string& other_fingerprint() const { return other_fingerprint_; }

 private:
  struct Entry {
    Digest key{};
    Taken taken;
    bool is_taken = false;
  };

  Result<void> add(std::string_view line, const ServedModel& model);

  std::vector<Entry> entries_;  ///< by key
  int64_t num_left_ = 0;
  int64_t num_failed_ = 0;
  uint64_t whole_bytes_ = 0;
  std::string other_fingerprint_;
};

}  // namespace headrace::api
