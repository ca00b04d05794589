// The lines of OpenAI's batch files: one request each in the input, one answer each in the output.
// Must not know files or the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/digest.h"
#include "api/error_json.h"
#include "api/json.h"
#include "api/limits.h"
#include "api/protocol.h"
#include "headrace/result.h"

namespace headrace::api {

/// {"custom_id", "method": "POST", "url": "/v1/...", "body": {...}}.
struct BatchLine {
  int64_t number = 0;  ///< in its file, from 1
  Digest key{};        ///< of its text: the answer carries it
  std::optional<std::string> custom_id;
  std::optional<Error> error;  ///< what is wrong with the line itself; else the rest is set
  const Protocol* protocol = nullptr;
  std::shared_ptr<const Json> body;
  std::vector<std::string> warnings;  ///< fields beside the body that nobody knows
};

/// Never fails: a line that is none has an error, and its custom_id where that could still be read.
/// `is_cut`: the line was longer than `text`.
BatchLine parse_batch_line(std::string_view text, int64_t number, bool is_cut,
                           const RequestLimits& limits);

/// Makes it the answer to a custom_id that an earlier line has already.
void mark_as_duplicate(BatchLine& line);
/// What mark_as_duplicate() makes of a line's key.
Digest duplicate_key(const Digest& key);

/// Its output line, with a line end: {"id", "custom_id", "response": {"status_code", "request_id",
/// "body"}, "error"}. `body` is JSON.
std::string batch_success(const BatchLine& line, std::string_view body);
/// The same for an error, which stands in the body and, as {"code", "message"}, in "error".
std::string batch_failure(const BatchLine& line, const ApiError& error);

/// What there is to know of an output line.
struct BatchAnswer {
  Digest key{};
  std::optional<std::string> custom_id;
  bool has_failed = false;
  std::string model;        ///< who answered; empty where nobody did
  std::string fingerprint;  ///< with what
};

/// Errors (invalid_argument): no output line of ours.
Result<BatchAnswer> read_batch_answer(std::string_view text);

}  // namespace headrace::api
