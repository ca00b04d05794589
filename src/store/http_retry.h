// When a request is tried again, and what is said where it is not. Must not know files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headrace/result.h"
#include "store/http_download.h"

namespace headrace {

/// Counts the tries of one thing, and waits between them: half a second, doubled each time, or what
/// the server asks for (Retry-After).
class HttpRetry {
 public:
  using Note = std::function<void(const std::string&)>;

  /// `what` is named in notes. `keep_going` is asked about ten times a second while it waits.
  HttpRetry(std::string what, Note note, std::function<bool()> keep_going)
      : what_(std::move(what)), note_(std::move(note)), keep_going_(std::move(keep_going)) {}

  /// True after a wait: try again. False: `outcome` is final (not transient, the fifth try, a
  /// server that wants more than two minutes of patience, or interrupted).
  bool again(const HttpOutcome& outcome);
  /// Something new came: tries are counted anew.
  void progressed() { num_tries_ = 0; }

 private:
  std::string what_;
  Note note_;
  std::function<bool()> keep_going_;
  int num_tries_ = 0;
};

/// Who answered, for the words of an error.
struct HttpPeer {
  std::string what;        ///< "org/repo", or an address
  bool is_hub = false;     ///< else any server
  bool has_token = false;  ///< one was sent
  std::string page;        ///< where a person can look at it
};

/// What an outcome without the wanted answer means: the error, or one of the status (401, 403, 404,
/// 429, ...) with the way out. Errors: not_found, io_error, overloaded, the outcome's own.
Error http_error(const HttpOutcome& outcome, const HttpPeer& peer);

}  // namespace headrace
