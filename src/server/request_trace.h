// Where the time of one request went, kept for those who ask. Must not know HTTP or JSON.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/request.h"

namespace headrace::server {

/// One completion of it.
struct TraceChoice {
  int64_t prompt = 0;  ///< of which of its prompts
  FinishReason reason = FinishReason::stop;
  bool has_stop_string = false;  ///< that ended it
  std::string stop_string;       ///< which, where prompts are kept
  TokenId stop_token = -1;
  RequestStats stats;
  std::shared_ptr<const Timeline> timeline;  ///< of the first choices alone
};

struct RequestTrace {
  std::string id;          ///< of the answer: "chatcmpl-..."
  std::string request_id;  ///< of the HTTP request: "req-..."
  std::string owner;       ///< who may see it
  std::string path;
  std::string model;
  std::string end;  ///< "complete", "client gone", "stuck client", "cut", "failed"
  std::string error;
  int64_t created_unix_seconds = 0;
  bool is_streamed = false;
  // Milliseconds since the request's header was read.
  double tokenized_ms = 0;    ///< template and tokens are done
  double submitted_ms = 0;    ///< the engine has it
  double first_token_ms = 0;  ///< here; 0: there was none
  double last_token_ms = 0;
  double sent_ms = 0;    ///< all of the answer is with the system
  double format_ms = 0;  ///< of which text, JSON and events
  int64_t sent_bytes = 0;
  std::vector<TraceChoice> choices;
  /// Only where the operator wants them kept.
  std::vector<std::vector<TokenId>> prompts;
};

/// The last so many. Thread-safe.
class TraceLog {
 public:
  static constexpr size_t kMost = 256;

  void add(std::shared_ptr<const RequestTrace> trace);
  /// By either id; null where it is not there, or another's.
  std::shared_ptr<const RequestTrace> find(std::string_view id, std::string_view owner) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const RequestTrace>> traces_;
};

}  // namespace headrace::server
