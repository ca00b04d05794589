// See session.h. Its parts: connection.h (bytes and time), request_reader.h (what comes),
// client_watch.h (a client that goes meanwhile), exchange_state.h (what handlers give).
#include "server/http/session.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <string>
#include <utility>

#include "server/http/client_watch.h"
#include "server/http/connection.h"
#include "server/http/exchange_state.h"
#include "server/http/reply_bytes.h"
#include "server/http/request_id.h"
#include "server/http/request_reader.h"

namespace headrace::server {
namespace {

/// A reply's body that goes out in one piece with its header.
constexpr size_t kCopiedBytes = 64 << 10;

}  // namespace

class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `is_spare`: above the limit of connections.
  Session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
          std::string client, bool is_spare)
      : context_(std::move(context)),
        is_spare_(is_spare),
        header_time_(is_spare ? context_->limits.spare_header_time : context_->limits.header_time),
        connection_(std::make_shared<Connection>(std::move(stream), context_->limits.stall_time,
                                                 context_->bytes_sent)),
        client_(std::move(client)),
        wake_(connection_->stream().get_executor()),
        watch_(std::make_shared<ClientWatch>(connection_, [this] { wake_.cancel(); })),
        reader_(context_, connection_, header_time_) {
    ++context_->num_connections;
    if (is_spare_) {
      context_->spares.push_back(this);
    } else {
      ++context_->num_regular;
    }
  }
  ~Session() {
    if (exchange_) end_exchange(ExchangeEnd::cut);
    set_under_way(false);
    if (is_listed_) context_->sessions.erase(place_);
    context_->spares.remove(this);
    if (!is_spare_) --context_->num_regular;
    --context_->num_connections;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  asio::awaitable<void> run(bool needs_handshake) {
    const auto self = shared_from_this();
    place_ = context_->sessions.insert(context_->sessions.end(), self);
    is_listed_ = true;
    if (!needs_handshake || co_await connection_->shake_hands(header_time_)) {
      while (co_await serve_one()) {
      }
      is_finishing_ = true;
      co_await connection_->finish();
    }
    if (is_spare_) count_unserved();
    close();
  }

  void end(bool even_busy) {
    is_ending_ = is_ending_ || even_busy;
    if (is_idle_ || (even_busy && is_reading_body_)) {
      connection_->interrupt();
    } else if (even_busy && !is_finishing_) {
      close();
    }
  }

  /// For another above the limit.
  void make_room() {
    context_->spares.remove(this);
    count_unserved();
    close();
  }

 private:
  void close() {
    connection_->close();
    wake_.cancel();
  }

  /// Of one above the limit, unless it had an answer.
  void count_unserved() {
    if (std::exchange(is_settled_, true)) return;
    ++context_->refused_connections;
    HttpRequest nothing;
    nothing.client = client_;
    context_->handlers.crowded(nothing);
  }

  /// From a request's header on, until its answer is with the system.
  void set_under_way(bool is_under_way) {
    if (std::exchange(is_under_way_, is_under_way) == is_under_way) return;
    context_->num_exchanges += is_under_way ? 1 : -1;
  }

  /// One request and its answer; whether the connection goes on.
  asio::awaitable<bool> serve_one() {
    const bool is_first = num_served_ == 0;
    if (context_->is_draining && !is_first && !reader_.has_bytes()) co_return false;
    framing_ = {};
    is_idle_ = !is_first;
    ReadEnd read = co_await reader_.wait_for_bytes(is_first);
    is_idle_ = false;
    if (is_ending_) co_return false;
    request_id_ = make_request_id();
    if (read == ReadEnd::whole) read = co_await reader_.read_head();
    HttpRequest& request = reader_.request();
    request.id = request_id_;
    request.client = client_;
    framing_.is_http_1_0 = reader_.is_http_1_0();
    framing_.request_id = request_id_;
    framing_.has_body = request.method != "HEAD";
    if (is_spare_ && read != ReadEnd::gone && !takes_probe(read)) co_return co_await crowded();
    if (read == ReadEnd::whole) {
      set_under_way(true);
      if (const auto refusal = context_->handlers.gate(request))
        co_return co_await refuse(*refusal);
      framing_.keeps_alive = reader_.keeps_alive() && !is_spare_;
      is_reading_body_ = true;
      read = co_await reader_.read_body();
      is_reading_body_ = false;
      if (read == ReadEnd::gone && is_ending_ && !connection_->is_closed()) {
        const std::string why = "The server is shutting down.";
        co_await refuse_as(503, why);
      }
    }
    if (read == ReadEnd::faulty)
      co_await refuse_as(reader_.fault().status, reader_.fault().message);
    if (read != ReadEnd::whole) co_return false;
    co_return co_await answer();
  }

  /// Whether what was read is a whole probe.
  bool takes_probe(ReadEnd read) {
    const bool is_probe = read == ReadEnd::whole && reader_.is_done() &&
                          context_->handlers.is_probe(reader_.request());
    is_settled_ = is_settled_ || is_probe;
    return is_probe;
  }

  /// Anything else above the limit.
  asio::awaitable<bool> crowded() {
    is_settled_ = true;
    ++context_->refused_connections;
    framing_.keeps_alive = false;
    const HttpReply reply = context_->handlers.crowded(reader_.request());
    co_return co_await send_refusal(reply, reader_.is_done());
  }

  /// What is left of the request is not waited for.
  asio::awaitable<bool> refuse(const HttpReply& refusal) {
    const bool is_read = reader_.is_done() || (!refusal.closes && reader_.drop_body());
    framing_.keeps_alive = is_read && !refusal.closes && !is_spare_ && reader_.keeps_alive();
    co_return co_await send_refusal(refusal, is_read);
  }

  asio::awaitable<void> refuse_as(int status, const std::string& message) {
    framing_.keeps_alive = false;
    const HttpReply reply = context_->handlers.refusal(reader_.request(), status, message);
    co_await send_refusal(reply, reader_.is_done());
  }

  /// Whether the connection goes on.
  asio::awaitable<bool> send_refusal(const HttpReply& reply, bool is_read) {
    if (context_->is_draining) framing_.keeps_alive = false;
    std::string bytes = reply_head(reply, context_->handlers.headers, reply.body.size(), framing_);
    if (framing_.has_body) bytes += reply.body;
    reader_.take_charge();
    ++num_served_;
    const bool is_sent = co_await connection_->send(bytes);
    set_under_way(false);
    if (!is_sent) co_return false;
    if (framing_.keeps_alive) co_return true;
    if (!is_read) co_await connection_->linger();
    co_return false;
  }

  asio::awaitable<bool> answer() {
    ++num_served_;
    auto executor = connection_->stream().get_executor();
    exchange_ = std::make_shared<ExchangeState>(
        std::move(reader_.request()), context_->workers,
        [self = weak_from_this(), executor] {
          asio::post(executor, [self] {
            if (const auto session = self.lock()) session->wake_.cancel();
          });
        },
        context_->handlers.error_body, reader_.take_charge());
    watch_->start();
    context_->handlers.handle(make_exchange(exchange_));
    const ExchangeEnd end = co_await send_answer();
    watch_->stop();
    end_exchange(end);
    if (end == ExchangeEnd::client_gone) ++context_->clients_gone;
    if (end == ExchangeEnd::client_stuck) ++context_->slow_clients;
    if (end != ExchangeEnd::complete) close();  // without a word: it must look cut
    co_return end == ExchangeEnd::complete&& framing_.keeps_alive && !connection_->is_closed();
  }

  void end_exchange(ExchangeEnd end) {
    exchange_->finish(end);
    exchange_.reset();
    set_under_way(false);
  }

  asio::awaitable<ExchangeEnd> send_answer() {
    bool is_stream = false;
    StreamHead head;
    while (true) {
      Outgoing out = exchange_->take();
      if (watch_->is_gone()) co_return ExchangeEnd::client_gone;
      if (out.is_cut || connection_->is_closed()) co_return ExchangeEnd::cut;
      std::string bytes;
      if (out.head) {
        head = std::move(*out.head);
        is_stream = !out.is_whole;
        bytes = begin_answer(head.reply, is_stream);
        if (!is_stream && framing_.has_body) {
          if (head.reply.body.size() > kCopiedBytes) {
            // On its own, so that a large one is there once.
            if (!co_await connection_->send(bytes)) co_return end_of_connection();
            bytes = std::move(head.reply.body);
          } else {
            bytes += head.reply.body;
          }
        }
      }
      if (is_stream) append_stream(bytes, out.bytes, out.is_last);
      if (!bytes.empty()) {
        if (!co_await connection_->send(bytes)) co_return end_of_connection();
        exchange_->sent(out.bytes.size());
      }
      if (out.is_last) co_return ExchangeEnd::complete;
      if (bytes.empty() && co_await wait_for_more(is_stream ? head.idle_after : Milliseconds(0))) {
        exchange_->write(head.idle_chunk);
      }
    }
  }

  /// Of one on which no more could be sent.
  ExchangeEnd end_of_connection() const {
    return connection_->timed_out() ? ExchangeEnd::client_stuck : ExchangeEnd::client_gone;
  }

  /// Its header.
  std::string begin_answer(HttpReply& reply, bool is_stream) {
    context_->handlers.decorate(exchange_->request(), reply);
    if (reply.closes || context_->is_draining) framing_.keeps_alive = false;
    if (is_stream && framing_.is_http_1_0) framing_.keeps_alive = false;
    return reply_head(reply, context_->handlers.headers,
                      is_stream ? std::nullopt : std::optional(reply.body.size()), framing_);
  }

  void append_stream(std::string& to, std::string_view bytes, bool is_last) const {
    if (!framing_.has_body) return;
    if (framing_.is_http_1_0) {
      to += bytes;
      return;
    }
    if (!bytes.empty()) append_chunk(to, bytes);
    if (is_last) to += kLastChunk;
  }

  /// Until there may be more to send; whether `time` (0: for ever) passed without.
  asio::awaitable<bool> wait_for_more(Milliseconds time) {
    if (time.count() > 0) {
      wake_.expires_after(time);
    } else {
      wake_.expires_at(asio::steady_timer::time_point::max());
    }
    const auto [error] = co_await wake_.async_wait(kAwait);
    co_return !error;
  }

  const std::shared_ptr<SessionContext> context_;
  const bool is_spare_;
  const Milliseconds header_time_;
  const std::shared_ptr<Connection> connection_;
  const std::string client_;
  std::list<std::weak_ptr<Session>>::iterator place_;
  asio::steady_timer wake_;
  const std::shared_ptr<ClientWatch> watch_;
  RequestReader reader_;
  std::shared_ptr<ExchangeState> exchange_;
  std::string request_id_;
  ReplyFraming framing_;
  int64_t num_served_ = 0;
  bool is_listed_ = false;
  bool is_settled_ = false;       ///< of one above the limit: what it gets is counted
  bool is_idle_ = false;          ///< between two requests
  bool is_reading_body_ = false;  ///< of a request that passed the gate
  bool is_under_way_ = false;     ///< a request whose header is there
  bool is_ending_ = false;        ///< no request more
  bool is_finishing_ = false;     ///< it ends by itself, soon
};

void start_session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
                   std::string client, bool needs_handshake) {
  const HttpLimits& limits = context->limits;
  const bool is_spare = context->num_regular >= limits.max_connections;
  if (is_spare && static_cast<int>(context->spares.size()) >= limits.max_spare_connections) {
    context->spares.front()->make_room();
  }
  auto executor = stream->get_executor();
  auto session =
      std::make_shared<Session>(std::move(context), std::move(stream), std::move(client), is_spare);
  asio::co_spawn(
      executor, [session, needs_handshake] { return session->run(needs_handshake); },
      asio::detached);
}

void end_sessions(SessionContext& context, bool all) {
  for (const auto& each : std::list(context.sessions)) {
    if (const auto session = each.lock()) session->end(all);
  }
}

}  // namespace headrace::server
