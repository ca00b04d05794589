// See http_server.h.
#include "server/http/http_server.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/system_limits.h"
#include "base/os/threads.h"
#include "server/http/session.h"
#include "server/http/streams.h"

namespace headrace::server {
namespace {

namespace fs = std::filesystem;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

constexpr int kBacklog = 1024;
constexpr uint64_t kOtherFiles = 256;  ///< models, libraries, logs
constexpr std::chrono::milliseconds kAcceptAgain{100};
/// For connections to be ended in good order when the server stops.
constexpr std::chrono::milliseconds kLastTurns{900};
constexpr std::chrono::milliseconds kLookForEnd{2};
/// What the system may hold of a reply: a reader that is late shows soon.
constexpr int kSendBufferBytes = 256 << 10;

Error cannot_listen(const std::string& where, const ErrorCodeOf& error) {
  Error out{ErrorCode::io_error, "cannot listen: " + error.message(), where, ""};
  if (error == asio::error::address_in_use) {
    out.hint = "another program listens there; give another --port";
  } else if (error == asio::error::access_denied) {
    out.hint = "ports below 1024 are for the system; give another --port";
  }
  return out;
}

std::string address_text(const Tcp::endpoint& endpoint) {
  const auto address = endpoint.address();
  return address.is_v6() ? fmt::format("[{}]:{}", address.to_string(), endpoint.port())
                         : fmt::format("{}:{}", address.to_string(), endpoint.port());
}

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(HttpOptions options, HttpHandlers handlers)
      : options_(std::move(options)),
        workers_(std::make_shared<Workers>(std::max(1, options_.num_workers),
                                           std::max(1, options_.num_long_workers))),
        context_(std::make_shared<SessionContext>()) {
    context_->limits = options_.limits;
    context_->handlers = std::move(handlers);
    context_->workers = workers_;
  }
  ~HttpServerImpl() override { stop(); }
  HttpServerImpl(const HttpServerImpl&) = delete;
  HttpServerImpl& operator=(const HttpServerImpl&) = delete;

  Result<void> start() {
    const HttpLimits& limits = options_.limits;
    allow_open_files(static_cast<uint64_t>(limits.max_connections + limits.max_spare_connections) +
                     kOtherFiles);
    if (options_.tls) {
      HEADRACE_ASSIGN(tls_, make_tls_context(*options_.tls));
    }
    HEADRACE_TRY(options_.unix_path.empty() ? bind_tcp() : bind_unix());
    for (auto& acceptor : tcp_) accept(*acceptor);
    if (local_) accept(*local_);
    thread_ = std::thread([this] {
      name_this_thread("http");
      run();
    });
    return {};
  }

  uint16_t port() const override { return port_; }

  HttpStats stats() const override {
    HttpStats out;
    out.num_connections = context_->num_connections;
    out.num_exchanges = context_->num_exchanges;
    out.accepted = accepted_;
    out.refused_connections = context_->refused_connections;
    out.clients_gone = context_->clients_gone;
    out.slow_clients = context_->slow_clients;
    out.bytes_sent = context_->bytes_sent;
    out.body_bytes = static_cast<int64_t>(context_->body_bytes.load());
    return out;
  }

  void every(std::chrono::milliseconds period, std::function<void()> work) override {
    asio::post(io_, [this, period, work = std::move(work)] {
      repeat(std::make_shared<asio::steady_timer>(io_), period, work);
    });
  }

  void drain() override {
    context_->is_draining = true;
    asio::post(io_, [this] { end_sessions(*context_, false); });
  }

  void stop() override {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      ErrorCodeOf ignored;
      for (auto& acceptor : tcp_) acceptor->close(ignored);
      if (local_) local_->close(ignored);
      end_sessions(*context_, true);
      stop_when_over(std::chrono::steady_clock::now() + kLastTurns);
    });
    thread_.join();
    workers_->join();
    if (!options_.unix_path.empty()) {
      std::error_code ignored;
      fs::remove(options_.unix_path, ignored);
    }
  }

 private:
  /// Once the sessions have seen that they end, at `latest`.
  void stop_when_over(std::chrono::steady_clock::time_point latest) {
    if (context_->sessions.empty() || std::chrono::steady_clock::now() >= latest) {
      guard_.reset();
      io_.stop();
      return;
    }
    auto timer = std::make_shared<asio::steady_timer>(io_, kLookForEnd);
    timer->async_wait([this, timer, latest](const ErrorCodeOf&) { stop_when_over(latest); });
  }

  void run() {
    while (true) {
      try {
        io_.run();
        return;
      } catch (...) {
        // Of one connection, which is lost with it; the others go on.
      }
    }
  }

  void repeat(const std::shared_ptr<asio::steady_timer>& timer, std::chrono::milliseconds period,
              const std::function<void()>& work) {
    timer->expires_after(period);
    timer->async_wait([this, timer, period, work](const ErrorCodeOf& error) {
      if (error) return;
      work();
      repeat(timer, period, work);
    });
  }

  Result<void> bind_tcp() {
    const std::string where = fmt::format("{}:{}", options_.host, options_.port);
    ErrorCodeOf error;
    Tcp::resolver resolver(io_);
    const auto found =
        resolver.resolve(options_.host, std::to_string(options_.port),
                         Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
    if (error) {
      return Error{ErrorCode::invalid_argument, "no such address: " + error.message(),
                   options_.host, "give an address of this machine with --host"};
    }
    ErrorCodeOf first;
    for (const auto& each : found) {
      Tcp::endpoint endpoint = each.endpoint();
      if (port_ != 0) endpoint.port(port_);
      auto acceptor = std::make_unique<Tcp::acceptor>(io_);
      acceptor->open(endpoint.protocol(), error);
      if (!error) acceptor->set_option(Tcp::acceptor::reuse_address(true), error);
      if (!error && endpoint.address().is_v6())
        acceptor->set_option(asio::ip::v6_only(true), error);
      if (!error) acceptor->bind(endpoint, error);
      if (!error) acceptor->listen(kBacklog, error);
      if (error) {
        if (!first) first = error;
        if (error == asio::error::address_in_use) break;
        continue;  // a machine without IPv6, say
      }
      port_ = acceptor->local_endpoint(error).port();
      tcp_.push_back(std::move(acceptor));
    }
    if (tcp_.empty() || first == asio::error::address_in_use) return cannot_listen(where, first);
    return {};
  }

  Result<void> bind_unix() {
    const std::string& path = options_.unix_path;
    ErrorCodeOf error;
    constexpr size_t kMaxPathBytes = 107;
    if (path.size() > kMaxPathBytes) {
      return Error{ErrorCode::invalid_argument,
                   "is longer than the 107 bytes that a socket's path may have", path, ""};
    }
    std::error_code ignored;
    if (fs::is_socket(path, ignored)) {
      // Left over, or somebody's who listens.
      Local::socket probe(io_);
      probe.connect(Local::endpoint(path), error);
      if (!error) return cannot_listen(path, asio::error::address_in_use);
      fs::remove(path, ignored);
    }
    local_ = std::make_unique<Local::acceptor>(io_);
    local_->open(Local(), error);
    if (!error) local_->bind(Local::endpoint(path), error);
    if (error) return cannot_listen(path, error);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, ignored);
    local_->listen(kBacklog, error);
    if (error) return cannot_listen(path, error);
    return {};
  }

  template <class Acceptor>
  void accept(Acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](const ErrorCodeOf& error,
                                            typename Acceptor::protocol_type::socket socket) {
      if (!acceptor.is_open()) return;
      if (!error) {
        take(std::move(socket));
        accept(acceptor);
        return;
      }
      // Out of descriptors, mostly: later there may be some.
      auto timer = std::make_shared<asio::steady_timer>(io_, kAcceptAgain);
      timer->async_wait([this, &acceptor, timer](const ErrorCodeOf& cut) {
        if (!cut && acceptor.is_open()) accept(acceptor);
      });
    });
  }

  void take(Tcp::socket socket) {
    ErrorCodeOf ignored;
    const auto endpoint = socket.remote_endpoint(ignored);
    socket.set_option(Tcp::no_delay(true), ignored);
    socket.set_option(Tcp::socket::send_buffer_size(kSendBufferBytes), ignored);
    serve(RawSocket(std::move(socket)), address_text(endpoint));
  }
  void take(Local::socket socket) { serve(RawSocket(std::move(socket)), "unix"); }

  void serve(RawSocket socket, std::string client) {
    ++accepted_;
    const bool has_tls = tls_ != nullptr;
    start_session(
        context_,
        has_tls ? make_tls_stream(std::move(socket), *tls_) : make_plain_stream(std::move(socket)),
        std::move(client), has_tls);
  }

  const HttpOptions options_;
  std::shared_ptr<Workers> workers_;
  std::shared_ptr<SessionContext> context_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  std::unique_ptr<asio::ssl::context> tls_;
  std::vector<std::unique_ptr<Tcp::acceptor>> tcp_;
  std::unique_ptr<Local::acceptor> local_;
  std::thread thread_;
  uint16_t port_ = 0;
  std::atomic<int64_t> accepted_{0};
};

}  // namespace

Result<std::unique_ptr<HttpServer>> start_http_server(const HttpOptions& options,
                                                      HttpHandlers handlers) {
  auto server = std::make_unique<HttpServerImpl>(options, std::move(handlers));
  HEADRACE_TRY(server->start());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace headrace::server
