// One connection: its requests, one after the other, on the I/O thread. Only for the files of this
// folder that include Boost.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>

#include "server/http/any_stream.h"
#include "server/http/exchange_state.h"
#include "server/http/http_server.h"

namespace headrace::server {

class Session;

/// What all connections of a server share. Its plain members belong to the I/O thread.
struct SessionContext {
  HttpLimits limits;
  HttpHandlers handlers;
  std::shared_ptr<Workers> workers;
  std::list<std::weak_ptr<Session>> sessions;
  std::list<Session*> spares;  ///< those above the limit, the oldest first
  int64_t num_regular = 0;     ///< connections that are none of these

  std::atomic<bool> is_draining{false};

  std::atomic<size_t> body_bytes{0};  ///< of all requests that still have theirs
  std::atomic<int64_t> num_connections{0};
  std::atomic<int64_t> num_exchanges{0};
  std::atomic<int64_t> refused_connections{0};
  std::atomic<int64_t> clients_gone{0};
  std::atomic<int64_t> slow_clients{0};
  std::atomic<int64_t> bytes_sent{0};
};

/// Bytes of a body, as long as somebody has it.
class BodyCharge {
 public:
  explicit BodyCharge(std::shared_ptr<SessionContext> context) : context_(std::move(context)) {}
  ~BodyCharge() { context_->body_bytes -= num_bytes_; }
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;

  /// More of them; whether there is room.
  bool add(size_t num_bytes) {
    const size_t most = context_->limits.max_body_bytes_of_all;
    if (num_bytes > most || context_->body_bytes > most - num_bytes) return false;
    context_->body_bytes += num_bytes;
    num_bytes_ += num_bytes;
    return true;
  }

 private:
  std::shared_ptr<SessionContext> context_;
  size_t num_bytes_ = 0;
};

/// Serves the connection until it ends; one above the limit of connections only for a probe, and
/// the oldest such is closed where there are too many. `client` is who it is from.
void start_session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
                   std::string client, bool needs_handshake);
/// Ends those that wait for a request; with `all`, every one.
void end_sessions(SessionContext& context, bool all);

}  // namespace headrace::server
