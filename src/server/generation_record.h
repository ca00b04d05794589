// What a request that generates leaves behind: its times and counts, its line in the log. Must not
// know how it is answered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/prepared_request.h"
#include "server/http/exchange.h"
#include "server/request_log.h"
#include "server/request_trace.h"
#include "server/server_state.h"

namespace headrace::server {

/// Of one request. Not thread-safe.
class GenerationRecord {
 public:
  GenerationRecord(ServerState& state, const HttpRequest& request, std::string_view path,
                   std::string owner);

  const std::string& owner() const { return trace_.owner; }
  /// Milliseconds since the request was there.
  double since_arrival_ms() const;

  void tokenized(double at_ms) { trace_.tokenized_ms = at_ms; }
  /// `id`: of the answer.
  void named(std::string id, int64_t created_unix_seconds, const ModelEntry& model,
             std::shared_ptr<const api::PreparedRequest> request);
  void submitted() { trace_.submitted_ms = since_arrival_ms(); }
  void answered(int status) { record_.status = status; }
  void failed(std::string code) { record_.code = std::move(code); }
  void wrote(size_t num_bytes) { trace_.sent_bytes += static_cast<int64_t>(num_bytes); }
  /// What an event that came at `now_ms` tells. `answer` has taken it.
  void note(size_t stream, const Event& event, const api::Answer& answer, double now_ms);
  /// Text, JSON and events of what was noted are made, which began at `begun_ms`.
  void formatted(double begun_ms);
  /// All is with the system, or nobody reads any more.
  void over(ExchangeEnd end);
  /// Once, at last: counts it, logs it and, where an engine had it, keeps its trace.
  void conclude(bool is_submitted);

 private:
  void keep();
  void log(const std::string& end);
  void note_finish(size_t stream, const FinishEvent& finish, const api::Answer& answer);
  void note_prompts();
  size_t num_completions() const;
  GonePhase phase() const;

  ServerState& state_;
  const int64_t arrived_ns_;
  RequestTrace trace_;
  RequestRecord record_;
  ExchangeEnd end_ = ExchangeEnd::complete;
  std::shared_ptr<const api::PreparedRequest> request_;
  std::vector<double> last_token_ms_;  ///< by completion
  std::vector<double> gaps_;           ///< seconds, not yet observed
};

}  // namespace headrace::server
