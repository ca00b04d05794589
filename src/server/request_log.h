// What is told of each request once it is over. Must not know HTTP.
#pragma once

#include <cstdint>
#include <string>

namespace headrace::server {

/// A request that was answered, or whose client has gone.
struct RequestRecord {
  std::string id;
  std::string client;
  std::string owner;
  std::string method;
  std::string path;
  std::string model;
  int status = 0;    ///< 0: the client went before it was answered
  std::string end;   ///< "complete", "client gone", "stuck client", "cut", "failed", "refused"
  std::string code;  ///< of the error that was answered: "context_length_exceeded"; "" where none
  double total_ms = 0;
  double queue_ms = 0;
  double first_token_ms = 0;  ///< from the request's arrival
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t num_left_out = 0;  ///< lines like this one since the last that was written
  bool is_routine = false;   ///< asked by machines all the time: health, metrics, files of the page
};

class RequestLog {
 public:
  virtual ~RequestLog() = default;
  /// From any thread; must not wait.
  virtual void write(const RequestRecord& record) = 0;
};

}  // namespace headrace::server
