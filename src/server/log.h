// The server's log on standard error: a line a request, and what the server has to say of itself.
// Never holds text of prompts or answers. Must not know HTTP; spdlog is in log.cc alone.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/request_log.h"

namespace headrace::server {

enum class LogLevel : uint8_t { debug, info, warning, error };

/// "debug", "info", "warning", "error", in this order.
const std::vector<std::string>& log_level_names();
/// Nothing where there is no such level.
std::optional<LogLevel> log_level_of(std::string_view name);

struct LogOptions {
  LogLevel level = LogLevel::info;
  bool is_json = false;        ///< one JSON object a line
  std::ostream* to = nullptr;  ///< null: standard error; must outlive the log
  size_t max_waiting = 8192;   ///< lines; where there are more the oldest are dropped
};

/// Thread-safe. Lines are written by a thread of its own, so that nobody waits for a terminal.
class ServerLog : public RequestLog {
 public:
  /// A line that is about no request.
  virtual void note(LogLevel level, std::string_view text) = 0;
  /// Lines that were dropped since nobody took them in time.
  virtual int64_t num_dropped() const = 0;
};

/// What is still waiting when the log goes has two seconds to be written.
std::unique_ptr<ServerLog> make_log(const LogOptions& options);

}  // namespace headrace::server
