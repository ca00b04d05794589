// One connection: its requests, one after the other, on the I/O thread. Only for the files of this
// folder that include Boost.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <list>
#include <memory>

#include "server/http/any_stream.h"
#include "server/http/http_server.h"

namespace headrace::server {

class Session;

/// What all connections of a server share. Its plain members belong to the I/O thread.
struct SessionContext {
  HttpLimits limits;
  HttpHandlers handlers;
  std::shared_ptr<asio::thread_pool> workers;
  bool is_draining = false;
  size_t body_bytes = 0;  ///< of all requests
  std::list<std::weak_ptr<Session>> sessions;

  std::atomic<int64_t> num_connections{0};
  std::atomic<int64_t> num_exchanges{0};
  std::atomic<int64_t> clients_gone{0};
  std::atomic<int64_t> slow_clients{0};
  std::atomic<int64_t> bytes_sent{0};
};

/// Serves the connection until it ends. `client` is who it is from.
void start_session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
                   std::string client, bool needs_handshake);
/// Ends those that wait for a request; with `all`, every one.
void end_sessions(SessionContext& context, bool all);

}  // namespace headrace::server
