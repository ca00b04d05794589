// HTTP/1.1 on TCP, TLS and Unix sockets. All of Boost is behind this header. Must not know routes,
// JSON or the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/result.h"
#include "server/http/exchange.h"
#include "server/http/http_message.h"

namespace headrace::server {

struct HttpLimits {
  size_t max_body_bytes = size_t{8} << 20;
  /// Of all requests whose bodies are read or not yet taken, together, as much of them as has come;
  /// where there is no room for more of one, it is answered 503.
  size_t max_body_bytes_of_all = size_t{256} << 20;
  size_t max_header_bytes = 16 << 10;
  int max_headers = 64;
  size_t max_target_bytes = 8 << 10;
  int max_connections = 4096;
  /// So many more are taken, for probes: all else on them is answered 503. Where these are taken
  /// too, the oldest of them is closed for the next.
  int max_spare_connections = 16;
  std::chrono::milliseconds spare_header_time{2'000};  ///< on those, instead of the next
  std::chrono::milliseconds header_time{10'000};       ///< from a request's first byte on
  std::chrono::milliseconds body_time{30'000};         ///< for a whole body
  std::chrono::milliseconds idle_time{75'000};         ///< between two requests of a connection
  std::chrono::milliseconds stall_time{30'000};        ///< in which something must be sent
};

struct TlsFiles {
  std::string certificate;  ///< PEM, with its chain
  std::string key;          ///< PEM
};

struct HttpOptions {
  std::string host = "127.0.0.1";  ///< or an address, or a name
  uint16_t port = 8080;            ///< 0: any free one
  std::string unix_path;           ///< not empty: a Unix socket instead
  std::optional<TlsFiles> tls;
  int num_workers = 2;       ///< for answers
  int num_long_workers = 2;  ///< for bodies
  HttpLimits limits;
};

struct HttpHandlers {
  /// Asked on the I/O thread as soon as the header is there, before the body is read: a reply
  /// refuses the request. Must not wait.
  std::function<std::optional<HttpReply>(const HttpRequest&)> gate;
  /// Called on the I/O thread with the whole request. Must not wait: what takes time is posted. An
  /// exception in it answers 500.
  std::function<void(std::shared_ptr<Exchange>)> handle;
  /// The reply to a request that the HTTP layer refuses by itself (400, 408, 413, 414, 415, 417,
  /// 431, 501, 503). Of the request there is as much as was read of its header, or its client and
  /// id alone. On the I/O thread; must not wait.
  std::function<HttpReply(const HttpRequest&, int status, const std::string& message)> refusal;
  /// Whether the request is answered on a connection above `max_connections` too. On the I/O
  /// thread; must not wait.
  std::function<bool(const HttpRequest&)> is_probe;
  /// The reply to any other request on such a connection. Where one was closed without a request
  /// there is the client alone, and the reply goes nowhere. On the I/O thread; must not wait.
  std::function<HttpReply(const HttpRequest&)> crowded;
  /// The body of the reply (500) where a handler failed.
  std::function<std::string(const HttpRequest&, int status, const std::string& message)> error_body;
  /// Headers of every reply.
  std::vector<HttpHeader> headers;
  /// Adds to a reply, whole or streamed, what goes with its request. On the I/O thread.
  std::function<void(const HttpRequest&, HttpReply&)> decorate;
};

/// Counts since the start, and now.
struct HttpStats {
  int64_t num_connections = 0;  ///< now
  int64_t num_exchanges = 0;    ///< now: requests whose header is there, not yet answered in whole
  int64_t accepted = 0;
  int64_t refused_connections = 0;  ///< above the limit, but for probes
  int64_t clients_gone = 0;
  int64_t slow_clients = 0;
  int64_t bytes_sent = 0;
  int64_t body_bytes = 0;  ///< now: of bodies that are read or not yet taken, as much as has come
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;

  /// The port that was bound (0 for a Unix socket).
  virtual uint16_t port() const = 0;
  virtual HttpStats stats() const = 0;
  /// Calls `work` on the I/O thread every `period`, which must be short.
  virtual void every(std::chrono::milliseconds period, std::function<void()> work) = 0;
  /// Ends connections that are between requests, and those under way behind their answers, which
  /// say so. Requests that still come on them are handled.
  virtual void drain() = 0;
  /// Takes no more connections, cuts all that are under way, ends the threads. Requests whose
  /// bodies still come are refused (503). Takes a second at most.
  virtual void stop() = 0;
};

/// That there is a certificate and its key in them. Errors: invalid_argument, naming the file.
Result<void> check_tls_files(const TlsFiles& files);

/// Binds, and begins to serve on threads of its own. Errors: invalid_argument (host, TLS files),
/// io_error (address in use, no permission).
Result<std::unique_ptr<HttpServer>> start_http_server(const HttpOptions& options,
                                                      HttpHandlers handlers);

}  // namespace headrace::server
