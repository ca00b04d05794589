// A connection's bytes: reading and writing within limits of time, and how it ends. Only for the
// files of this folder that include Boost. Must not know HTTP.
#pragma once

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/http/any_stream.h"

namespace headrace::server {

using Milliseconds = std::chrono::milliseconds;

/// What is awaited gives its error code beside its result, and throws nothing.
inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

/// All of it belongs to the I/O thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// Something must be sent in each `stall_time`; what was is added to `bytes_sent`, which must
  /// outlive this.
  Connection(std::unique_ptr<AnyStream> stream, Milliseconds stall_time,
             std::atomic<int64_t>& bytes_sent);

  AnyStream& stream() { return *stream_; }
  RawSocket& socket() { return stream_->socket(); }

  /// One limit of time at once. Where it passes, what is under way on the socket is cancelled.
  void set_deadline(Milliseconds time);
  void end_deadline();
  /// Whether the last one passed.
  bool timed_out() const { return timed_out_; }

  /// Whether it came about in `time`.
  asio::awaitable<bool> shake_hands(Milliseconds time);
  /// Sends all; false where the connection is at its end, or nothing moved for too long.
  asio::awaitable<bool> send(const std::string& bytes);
  /// Says that nothing more is sent, as TLS wants it said, and waits a moment for the same from the
  /// other end. Not where something was left unsent: a cut answer must look like one.
  asio::awaitable<void> finish();
  /// Ends sending and reads for a while: a client that still sends would lose the answer if the
  /// connection was closed before.
  asio::awaitable<void> linger();

  /// Cancels what is under way.
  void interrupt();
  void close();
  bool is_closed() const { return is_closed_; }

 private:
  void wait_for_deadline(Milliseconds time, int64_t turn);

  const std::unique_ptr<AnyStream> stream_;
  const Milliseconds stall_time_;
  std::atomic<int64_t>& bytes_sent_;
  asio::steady_timer deadline_;
  int64_t deadline_turn_ = 0;
  bool timed_out_ = false;
  bool is_cut_ = false;       ///< within what was to be sent, or before there was a connection
  bool is_finished_ = false;  ///< its end was said
  bool is_closed_ = false;
};

}  // namespace headrace::server
