// See client_watch.h.
#include "server/http/client_watch.h"

#include <utility>

#include "base/os/peer_socket.h"

namespace headrace::server {
namespace {

/// For the end of a client whose next request is there.
constexpr Milliseconds kLookAgain{250};

}  // namespace

ClientWatch::ClientWatch(std::shared_ptr<Connection> connection, std::function<void()> gone)
    : connection_(std::move(connection)),
      gone_(std::move(gone)),
      again_(connection_->stream().get_executor()) {}

void ClientWatch::start() {
  is_gone_ = false;
  connection_->socket().async_wait(
      RawSocket::wait_read, [weak = weak_from_this(), turn = ++turn_](const ErrorCodeOf& error) {
        const auto self = weak.lock();
        if (!self || self->turn_ != turn) return;
        if (!error) self->look();
        if (error && error != asio::error::operation_aborted) self->see_gone();
      });
}

void ClientWatch::look() {
  if (peer_has_closed(connection_->socket().native_handle())) {
    see_gone();
    return;
  }
  // Bytes of the next request: they make the socket readable as long as they are there.
  again_.expires_after(kLookAgain);
  again_.async_wait([weak = weak_from_this(), turn = turn_](const ErrorCodeOf& error) {
    const auto self = weak.lock();
    if (!error && self && self->turn_ == turn) self->look();
  });
}

void ClientWatch::see_gone() {
  is_gone_ = true;
  connection_->interrupt();
  gone_();
}

void ClientWatch::stop() {
  ++turn_;
  again_.cancel();
  connection_->interrupt();
}

}  // namespace headrace::server
