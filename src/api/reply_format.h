// How the answers of one protocol look, whole and streamed. Must not know sockets.
#pragma once

#include <cstdint>
#include <string>

#include "api/answer.h"
#include "api/error_json.h"

namespace headrace::api {

struct ResponseHead {
  std::string id;  ///< begins with Protocol::id_prefix
  int64_t created_unix_seconds = 0;
};

/// Of one answer. Either whole() is called, or begin(), more() any number of times and then end()
/// or failed(). All text is valid UTF-8, and no number is NaN or infinite.
class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;

  /// The body of an unstreamed answer. All of its choices have ended, and it has not failed.
  virtual std::string whole(const Answer& answer) = 0;

  /// What comes before the first token. As all below, it appends server-sent events to `out`.
  virtual void begin(std::string& /*out*/) {}
  /// What the answer has more than at the last call; may append nothing. It has not failed.
  virtual void more(const Answer& answer, std::string& out) = 0;
  /// What is left, and the protocol's own end. All choices have ended.
  virtual void end(const Answer& answer, std::string& out) = 0;
  /// Instead of end(): a stream that stops here can be told from a whole one.
  virtual void failed(const ApiError& error, std::string& out) = 0;
};

}  // namespace headrace::api
