// See connection.h.
#include "server/http/connection.h"

#include <utility>

namespace headrace::server {
namespace {

/// Between two cancellations behind a deadline: one may come between two operations.
constexpr Milliseconds kCancelAgain{250};
/// For the other end to say its own end.
constexpr Milliseconds kFinishTime{500};
constexpr Milliseconds kLingerTime{2'000};
constexpr size_t kLingerBytes = size_t{64} << 20;
constexpr size_t kWasteBytes = 16 << 10;

}  // namespace

Connection::Connection(std::unique_ptr<AnyStream> stream, Milliseconds stall_time,
                       std::atomic<int64_t>& bytes_sent)
    : stream_(std::move(stream)),
      stall_time_(stall_time),
      bytes_sent_(bytes_sent),
      deadline_(stream_->get_executor()) {}

void Connection::set_deadline(Milliseconds time) {
  timed_out_ = false;
  wait_for_deadline(time, ++deadline_turn_);
}

void Connection::wait_for_deadline(Milliseconds time, int64_t turn) {
  deadline_.expires_after(time);
  deadline_.async_wait([weak = weak_from_this(), turn](const ErrorCodeOf& error) {
    const auto self = weak.lock();
    if (error || !self || self->deadline_turn_ != turn) return;
    self->timed_out_ = true;
    self->interrupt();
    self->wait_for_deadline(kCancelAgain, turn);
  });
}

void Connection::end_deadline() {
  ++deadline_turn_;
  deadline_.cancel();
}

asio::awaitable<bool> Connection::shake_hands(Milliseconds time) {
  set_deadline(time);
  const auto [error, ignored] = co_await stream_->async_handshake(kAwait);
  end_deadline();
  is_cut_ = static_cast<bool>(error);
  co_return !error;
}

asio::awaitable<bool> Connection::send(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    set_deadline(stall_time_);
    const auto [error, size] = co_await stream_->async_write_some(
        asio::buffer(bytes.data() + at, bytes.size() - at), kAwait);
    if (error || is_closed_) {
      is_cut_ = true;
      co_return false;
    }
    at += size;
    bytes_sent_ += static_cast<int64_t>(size);
  }
  end_deadline();
  co_return true;
}

asio::awaitable<void> Connection::finish() {
  if (is_closed_ || is_cut_ || std::exchange(is_finished_, true)) co_return;
  set_deadline(kFinishTime);
  co_await stream_->async_shutdown(kAwait);  // whatever the other end makes of it
  end_deadline();
}

asio::awaitable<void> Connection::linger() {
  co_await finish();
  ErrorCodeOf ignored;
  socket().shutdown(RawSocket::shutdown_send, ignored);
  set_deadline(kLingerTime);
  std::string waste(kWasteBytes, '\0');
  for (size_t num_read = 0; num_read < kLingerBytes;) {
    const auto [error, size] = co_await socket().async_read_some(asio::buffer(waste), kAwait);
    if (error || is_closed_) break;
    num_read += size;
  }
  end_deadline();
}

void Connection::interrupt() {
  ErrorCodeOf ignored;
  socket().cancel(ignored);
}

void Connection::close() {
  is_closed_ = true;
  end_deadline();
  ErrorCodeOf ignored;
  socket().close(ignored);
}

}  // namespace headrace::server
