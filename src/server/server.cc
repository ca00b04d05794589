// See server.h.
#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "base/os/free_memory.h"
#include "server/access.h"
#include "server/log_rate.h"
#include "server/logged_exchange.h"
#include "server/replies.h"
#include "server/route.h"
#include "server/server_state.h"

namespace headrace::server {
namespace {

/// For what is still to be said to clients when the server ends.
constexpr std::chrono::milliseconds kLastWords{300};
constexpr int kSoonAgain = 1;  ///< Retry-After, in seconds

/// A page that asks from elsewhere, before it asks. Which headers it may send does not matter: what
/// they may be is up to who made the list of origins.
HttpReply preflight_reply(const HttpRequest& request) {
  std::string names;
  for (const char c : request.header("access-control-request-headers")) {
    const bool is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '-' || c == ',' || c == ' ' || c == '_';
    if (is_name) names.push_back(c);
  }
  HttpReply out;
  out.status = 204;
  out.headers = {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
                 {"Access-Control-Allow-Headers",
                  names.empty() ? "Authorization, Content-Type, X-Api-Key" : names},
                 {"Access-Control-Max-Age", "600"}};
  return out;
}

void allow_origin(const ServerState& state, const HttpRequest& request, HttpReply& reply) {
  if (!is_listed_origin(state.options.origins, request)) return;
  reply.headers.push_back({"Access-Control-Allow-Origin", std::string(request.header("origin"))});
  reply.headers.push_back({"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"});
  reply.headers.push_back({"Vary", "Origin"});
}

class ServerImpl final : public Server {
 public:
  ServerImpl(ServerOptions options, RequestLog* log) : state_(std::move(options)) {
    state_.log = log;
  }
  ~ServerImpl() override { stop(); }
  ServerImpl(const ServerImpl&) = delete;
  ServerImpl& operator=(const ServerImpl&) = delete;

  Result<void> start() {
    HttpHandlers handlers;
    handlers.gate = [this](const HttpRequest& request) {
      auto refusal = gate(request);
      if (!refusal) return refusal;
      allow_origin(state_, request, *refusal);
      if (refusal->status == 204) return refusal;
      state_.metrics.count_refused(refusal->status);
      log_refusal(record_of(request, ""), refusal->status);
      return refusal;
    };
    handlers.handle = [this](ExchangePtr exchange) { handle(std::move(exchange)); };
    handlers.decorate = [this](const HttpRequest& request, HttpReply& reply) {
      allow_origin(state_, request, reply);
    };
    handlers.refusal = [this](const HttpRequest& request, int status, const std::string& message) {
      const ErrorShape shape = error_shape(request.path);
      HttpReply refusal = status == 503 ? unavailable_reply(message, 1, shape)
                                        : error_reply(status, message, shape);
      if (status == 415) refusal.headers.push_back({"Accept-Encoding", "identity"});
      allow_origin(state_, request, refusal);
      state_.metrics.count_refused(status);
      log_refusal(record_of(request, ""), status);
      return refusal;
    };
    handlers.is_probe = [](const HttpRequest& request) {
      return is_probe(find_route(request.method, request.path).route);
    };
    handlers.crowded = [this](const HttpRequest& request) {
      HttpReply refusal = unavailable_reply("The server has as many connections as it may have.",
                                            kSoonAgain, error_shape(request.path));
      allow_origin(state_, request, refusal);
      if (!request.method.empty()) state_.metrics.count_refused(refusal.status);
      RequestRecord record = record_of(request, "");
      record.code = "too_many_connections";
      log_refusal(std::move(record), refusal.status);
      return refusal;
    };
    handlers.error_body = [](const HttpRequest& request, int status, const std::string& message) {
      return error_body(status, message, error_shape(request.path));
    };
    handlers.headers = {{"Server", "headrace/" + state_.options.version},
                        {"X-Content-Type-Options", "nosniff"}};
    state_.http_stats = [this] { return http_ ? http_->stats() : HttpStats(); };
    HEADRACE_ASSIGN(http_, start_http_server(state_.options.http, std::move(handlers)));
    return {};
  }

  uint16_t port() const override { return http_->port(); }

  void set_models(std::vector<std::unique_ptr<ModelEntry>> models) override {
    for (const auto& each : models) state_.metrics.add_model(each->name());
    state_.set_models(std::make_shared<const ModelSet>(std::move(models)));
  }
  void drain() override {
    http_->drain();  // first: what is refused from then on says that its connection ends
    state_.is_draining = true;
  }
  int64_t num_under_way() const override { return http_->stats().num_exchanges; }

  void stop() override {
    if (!http_) return;
    state_.is_draining = true;
    // Streams first: what they give last still finds its workers.
    if (const auto models = state_.models()) models->end_streams();
    const auto end = std::chrono::steady_clock::now() + kLastWords;
    while (num_under_way() > 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    http_->stop();
  }

 private:
  using ExchangePtr = std::shared_ptr<Exchange>;

  /// On the I/O thread, before the body is read.
  std::optional<HttpReply> gate(const HttpRequest& request) {
    const FoundRoute found = find_route(request.method, request.path);
    const ErrorShape shape = error_shape(request.path);
    // Probes come by whatever name or address they know the server.
    if (const auto fault = origin_fault(state_.options.origins, request);
        fault && !is_probe(found.route)) {
      return error_reply(403, *fault, shape);
    }
    if (request.method == "OPTIONS") return preflight_reply(request);
    const ApiKey* key = key_of(state_, request);
    const bool is_public = found.route != nullptr && found.route->access == Access::everyone;
    if (!is_public && !state_.options.keys.empty() && key == nullptr) {
      HttpReply out = error_reply(401,
                                  given_key(request).empty()
                                      ? "This server wants an API key: Authorization: Bearer KEY."
                                      : "The API key is not one of this server's.",
                                  shape);
      out.headers.push_back({"WWW-Authenticate", "Bearer"});
      return out;
    }
    if (found.route == nullptr) {
      return found.other_method.empty()
                 ? error_reply(404, "There is no " + shown(request.path) + " here.", shape)
                 : wrong_method_reply(request, found.other_method);
    }
    return check_readiness(*found.route, key);
  }

  /// `route` may be null.
  static bool is_probe(const Route* route) {
    return route != nullptr && route->runs_on == RunsOn::io_thread &&
           route->access == Access::everyone;
  }

  std::optional<HttpReply> check_readiness(const Route& route, const ApiKey* key) {
    const auto now = std::chrono::steady_clock::now();
    if (route.until == Until::ready) {
      if (!state_.models()) return unavailable_reply("Loading model", 1, route.errors);
      if (state_.is_draining && route.generates) {
        return unavailable_reply("The server is shutting down.",
                                 state_.admission.retry_after_seconds(now), route.errors);
      }
    }
    const std::string owner = key != nullptr ? key->owner : "";
    std::optional<Refusal> refusal;
    if (route.generates) {
      refusal = state_.admission.check(owner, key != nullptr ? key->max_requests : 0, 0, now);
    } else if (route.runs_on == RunsOn::long_worker) {
      refusal = state_.text_tools.check(owner, most_text_tools(key), 0, now);
    }
    if (refusal) return refusal_reply(*refusal, route.errors);
    return std::nullopt;
  }

  static HttpReply wrong_method_reply(const HttpRequest& request, std::string_view right) {
    HttpReply out =
        error_reply(405, "This address exists, but not for " + shown(request.method) + ".",
                    error_shape(request.path));
    out.headers.push_back({"Allow", right == "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS"});
    return out;
  }

  /// That the key's owner may have at once; 0: as many as there may be.
  int64_t most_text_tools(const ApiKey* key) const {
    if (key == nullptr) return 0;
    const int64_t share = std::max<int64_t>(1, state_.options.max_text_tools / 2);
    return key->max_requests > 0 ? std::min<int64_t>(key->max_requests, share) : share;
  }

  static std::string shown(std::string_view text) {
    constexpr size_t kLongest = 80;
    std::string out;
    for (const char c : text.substr(0, kLongest)) out.push_back(c > 0x20 && c < 0x7f ? c : '?');
    return out;
  }

  /// Those that everybody may cause as often as they like: so many a second.
  void log_refusal(RequestRecord record, int status) const {
    if (state_.log == nullptr) return;
    const auto left_out = refusals_.take(std::chrono::steady_clock::now());
    if (!left_out) return;
    record.status = status;
    record.end = "refused";
    record.num_left_out = *left_out;
    state_.log->write(record);
  }

  ExchangePtr logged(const Route& route, ExchangePtr exchange) const {
    // Those that generate tell more of themselves, and do so on their own.
    if (state_.log == nullptr || (route.generates && state_.models())) return exchange;
    const ApiKey* key = key_of(state_, exchange->request());
    RequestRecord record = record_of(exchange->request(), key != nullptr ? key->owner : "");
    record.is_routine = route.is_routine;
    return logged_exchange(std::move(exchange), *state_.log, std::move(record));
  }

  void handle(ExchangePtr exchange) noexcept {
    try {
      pass_on(std::move(exchange));
    } catch (...) {
      // What nobody holds any more is answered 500.
    }
  }

  void pass_on(ExchangePtr exchange) {
    const Route* route = find_route(exchange->request().method, exchange->request().path).route;
    exchange = logged(*route, std::move(exchange));
    if (route->runs_on == RunsOn::io_thread) {
      route->handle(state_, std::move(exchange));
      return;
    }
    if (route->runs_on == RunsOn::long_worker) {
      post_long(*route, std::move(exchange));
      return;
    }
    Exchange& place = *exchange;
    place.post([this, route, exchange = std::move(exchange)]() mutable {
      route->handle(state_, std::move(exchange));
    });
  }

  /// If there is a place for it, which it has until its work is done and its answer sent.
  void post_long(const Route& route, ExchangePtr exchange) {
    const HttpRequest& request = exchange->request();
    const ApiKey* key = key_of(state_, request);
    std::optional<Refusal> refusal;
    std::shared_ptr<Admission::Ticket> ticket = state_.text_tools.enter(
        key != nullptr ? key->owner : "", most_text_tools(key),
        static_cast<int64_t>(request.body.size()), std::chrono::steady_clock::now(), refusal);
    if (refusal) {
      state_.metrics.count_refused(429);
      exchange->reply(refusal_reply(*refusal, route.errors));
      return;
    }
    exchange->on_over([ticket](ExchangeEnd) {});
    Exchange& place = *exchange;
    place.post_long([this, &route, ticket, exchange = std::move(exchange)]() mutable {
      if (exchange->is_over()) return;  // nobody works for a client that has gone
      route.handle(state_, std::move(exchange));
    });
  }

  static constexpr int kMaxLoggedRefusals = 10;  ///< a second

  ServerState state_;
  mutable LogRate refusals_{kMaxLoggedRefusals};
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

const ApiKey* key_of(const ServerState& state, const HttpRequest& request) {
  if (state.options.keys.empty()) return nullptr;
  return find_key(state.options.keys, given_key(request));
}

Result<std::unique_ptr<Server>> start_server(ServerOptions options, RequestLog* log) {
  keep_little_freed_memory();
  auto server = std::make_unique<ServerImpl>(std::move(options), log);
  HEADRACE_TRY(server->start());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace headrace::server
