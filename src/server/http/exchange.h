// One request and the reply that is being made to it. Thread-safe. Must not know Beast.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/http/http_message.h"

namespace headrace::server {

/// How a reply came to its end.
enum class ExchangeEnd {
  complete,      ///< all of it was handed to the system
  client_gone,   ///< the connection ended before
  client_stuck,  ///< nothing could be sent for the stall time
  cut,           ///< by abort(), or since the server stops
};

/// A streamed reply: what comes before its first bytes.
struct StreamHead {
  HttpReply reply;  ///< its body is not used
  /// Sent where nothing else was for `idle_after`, so that nobody on the way closes the connection.
  std::string idle_chunk{};
  std::chrono::milliseconds idle_after{0};  ///< 0: never
};

/// Handlers get one of these, and answer now or later, from any thread: with reply(), or with
/// begin(), write() ... and end(). Dropping the last reference unanswered answers 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  /// The body of the request, whose memory the exchange then no longer holds.
  virtual std::string take_body() = 0;

  /// The whole answer. Only the first answer counts.
  virtual void reply(HttpReply reply) = 0;
  virtual void begin(StreamHead head) = 0;
  virtual void write(std::string bytes) = 0;
  /// The end of a streamed answer.
  virtual void end() = 0;
  /// Cuts the connection, so that a client can tell a cut answer from a whole one.
  virtual void abort() = 0;

  /// Bytes given to write() and not yet taken by the system.
  virtual size_t unsent_bytes() const = 0;
  /// Whether nobody will read what is written any more.
  virtual bool is_over() const = 0;

  /// Calls `then` on a worker once the exchange is over, for whatever reason; at once where it is.
  virtual void on_over(std::function<void(ExchangeEnd)> then) = 0;

  /// Runs `work` on a worker thread; of one exchange one at a time, in order. An exception in it
  /// answers 500.
  virtual void post(std::function<void()> work) = 0;
  /// Runs `work`, which may take long, on a thread that no answer waits for; in no order with
  /// anything else of the exchange. An exception in it answers 500.
  virtual void post_long(std::function<void()> work) = 0;
  /// As post(), after `time`; not if the exchange is over by then.
  virtual void post_after(std::chrono::milliseconds time, std::function<void()> work) = 0;
};

}  // namespace headrace::server
