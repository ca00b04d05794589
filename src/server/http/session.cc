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
  Session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
          std::string client)
      : context_(std::move(context)),
        connection_(std::make_shared<Connection>(std::move(stream), context_->limits.stall_time,
                                                 context_->bytes_sent)),
        client_(std::move(client)),
        wake_(connection_->stream().get_executor()),
        watch_(std::make_shared<ClientWatch>(connection_, [this] { wake_.cancel(); })),
        reader_(context_, connection_) {
    ++context_->num_connections;
  }
  ~Session() {
    if (exchange_) end_exchange(ExchangeEnd::cut);
    if (is_listed_) context_->sessions.erase(place_);
    --context_->num_connections;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  asio::awaitable<void> run(bool needs_handshake) {
    const auto self = shared_from_this();
    place_ = context_->sessions.insert(context_->sessions.end(), self);
    is_listed_ = true;
    if (!needs_handshake || co_await connection_->shake_hands(context_->limits.header_time)) {
      while (co_await serve_one()) {
      }
      is_finishing_ = true;
      co_await connection_->finish();
    }
    close();
  }

  void end(bool even_busy) {
    is_ending_ = is_ending_ || even_busy;
    if (is_idle_) {
      connection_->interrupt();
    } else if (even_busy && !is_finishing_) {
      close();
    }
  }

 private:
  void close() {
    connection_->close();
    wake_.cancel();
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
    if (read == ReadEnd::whole) {
      if (const auto refusal = context_->handlers.gate(request))
        co_return co_await refuse(*refusal);
      framing_.keeps_alive = reader_.keeps_alive();
      read = co_await reader_.read_body();
    }
    if (read == ReadEnd::faulty) co_await refuse_faulty();
    if (read != ReadEnd::whole) co_return false;
    co_return co_await answer();
  }

  /// What is left of the request is not waited for.
  asio::awaitable<bool> refuse(const HttpReply& refusal) {
    const bool is_read = reader_.is_done() || (!refusal.closes && reader_.drop_body());
    framing_.keeps_alive = is_read && !refusal.closes && reader_.keeps_alive();
    co_return co_await send_refusal(refusal, is_read);
  }

  asio::awaitable<void> refuse_faulty() {
    framing_.keeps_alive = false;
    const HttpFault& fault = reader_.fault();
    const HttpReply reply =
        context_->handlers.refusal(reader_.request(), fault.status, fault.message);
    co_await send_refusal(reply, reader_.is_done());
  }

  /// Whether the connection goes on.
  asio::awaitable<bool> send_refusal(const HttpReply& reply, bool is_read) {
    std::string bytes = reply_head(reply, context_->handlers.headers, reply.body.size(), framing_);
    if (framing_.has_body) bytes += reply.body;
    reader_.take_charge();
    ++num_served_;
    if (!co_await connection_->send(bytes)) co_return false;
    if (framing_.keeps_alive) co_return true;
    if (!is_read) co_await connection_->linger();
    co_return false;
  }

  asio::awaitable<bool> answer() {
    ++context_->num_exchanges;
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
    --context_->num_exchanges;
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
  bool is_idle_ = false;       ///< between two requests
  bool is_ending_ = false;     ///< no request more
  bool is_finishing_ = false;  ///< it ends by itself, soon
};

void start_session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
                   std::string client, bool needs_handshake) {
  auto executor = stream->get_executor();
  auto session =
      std::make_shared<Session>(std::move(context), std::move(stream), std::move(client));
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
