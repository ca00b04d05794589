// See session.h.
#include "server/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/os/peer_socket.h"
#include "server/http/exchange_state.h"
#include "server/http/reply_bytes.h"
#include "server/http/request_id.h"

namespace headrace::server {
namespace http = boost::beast::http;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
using Milliseconds = std::chrono::milliseconds;

constexpr size_t kReadBytes = 16 << 10;
/// Of a connection's buffer beyond the longest header: what stands around a chunk of a body.
constexpr size_t kBufferSlack = 64 << 10;
constexpr Milliseconds kLookAgain{250};  ///< for the end of a client whose next request is there
constexpr Milliseconds kLingerTime{2'000};
constexpr size_t kLingerBytes = size_t{64} << 20;

/// What was sent is no HTTP, as against a connection that ended.
bool is_malformed(const ErrorCodeOf& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

/// "100-continue", in letters of either case.
bool is_go_on(std::string_view expect) {
  return boost::beast::iequals(expect, "100-continue");
}

}  // namespace

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<SessionContext> context, std::unique_ptr<AnyStream> stream,
          std::string client)
      : context_(std::move(context)),
        stream_(std::move(stream)),
        client_(std::move(client)),
        buffer_(context_->limits.max_header_bytes + kBufferSlack),
        deadline_(stream_->get_executor()),
        wake_(stream_->get_executor()),
        look_(stream_->get_executor()) {
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
    if (!needs_handshake || co_await shake_hands()) {
      while (co_await serve_one()) {
      }
    }
    end_deadline();
    close();
  }

  void end(bool even_busy) {
    if (is_idle_ || even_busy) close();
  }

 private:
  void close() {
    is_closed_ = true;
    ErrorCodeOf ignored;
    stream_->socket().close(ignored);
    wake_.cancel();
  }

  // One limit of time at once. Where it passes, what is under way on the socket is cancelled.
  void set_deadline(Milliseconds time) {
    timed_out_ = false;
    wait_for_deadline(time, ++deadline_turn_);
  }
  void wait_for_deadline(Milliseconds time, int64_t turn) {
    deadline_.expires_after(time);
    deadline_.async_wait([self = weak_from_this(), turn](const ErrorCodeOf& error) {
      const auto session = self.lock();
      if (error || !session || session->deadline_turn_ != turn) return;
      session->timed_out_ = true;
      ErrorCodeOf ignored;
      session->stream_->socket().cancel(ignored);
      // Again, for it may have come between two reads.
      session->wait_for_deadline(kLookAgain, turn);
    });
  }
  void end_deadline() {
    ++deadline_turn_;
    deadline_.cancel();
  }

  asio::awaitable<bool> shake_hands() {
    set_deadline(context_->limits.header_time);
    const auto [error, ignored] = co_await stream_->async_handshake(kAwait);
    end_deadline();
    co_return !error;
  }

  using Parser = http::request_parser<http::string_body>;

  /// One request and its answer; whether the connection goes on.
  asio::awaitable<bool> serve_one() {
    if (!co_await wait_for_bytes()) co_return false;
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(context_->limits.max_header_bytes));
    parser.body_limit(context_->limits.max_body_bytes);
    set_deadline(context_->limits.header_time);
    const auto [error, ignored] =
        co_await http::async_read_header(*stream_, buffer_, parser, kAwait);
    request_id_ = make_request_id();
    if (is_closed_) co_return false;
    framing_ = {.is_http_1_0 = parser.get().version() < 11, .request_id = request_id_};
    if (error) co_return co_await answer_header_fault(parser, error);
    HttpRequest request;
    std::optional<HttpReply> refusal = read_head(parser, request);
    if (!refusal) refusal = context_->handlers.gate(request);
    framing_.has_body = request.method != "HEAD";
    if (refusal) {
      // What is left of the request is not waited for.
      const bool is_read = parser.is_done() || (!refusal->closes && drop_body(parser));
      framing_.keeps_alive = is_read && !refusal->closes && parser.keep_alive();
      end_deadline();
      co_return co_await send_refusal(*refusal, is_read);
    }
    framing_.keeps_alive = parser.keep_alive();
    if (!parser.is_done() && !co_await read_body(parser)) co_return false;
    end_deadline();
    request.body = std::move(parser.get().body());
    co_return co_await answer(std::move(request));
  }

  /// Whether the body had come with the header; it is gone then.
  bool drop_body(const Parser& parser) {
    const auto length = parser.content_length();
    if (!length || *length > buffer_.size()) return false;
    buffer_.consume(static_cast<size_t>(*length));
    return true;
  }

  asio::awaitable<bool> wait_for_bytes() {
    if (buffer_.size() > 0) co_return true;
    if (context_->is_draining && num_served_ > 0) co_return false;
    if (buffer_.capacity() > 4 * kReadBytes) buffer_.shrink_to_fit();
    is_idle_ = num_served_ > 0;
    set_deadline(num_served_ > 0 ? context_->limits.idle_time : context_->limits.header_time);
    const auto [error, size] = co_await stream_->async_read_some(buffer_.prepare(1024), kAwait);
    is_idle_ = false;
    end_deadline();
    if (error || is_closed_) {
      // Who says nothing on a new connection is told why it ends.
      if (!timed_out_ || num_served_ > 0 || is_closed_) co_return false;
      framing_ = {};
      co_await refuse(408, "The request's header did not come in time.");
      co_return false;
    }
    buffer_.commit(size);
    co_return true;
  }

  asio::awaitable<bool> answer_header_fault(const Parser& parser, const ErrorCodeOf error) {
    end_deadline();
    framing_.keeps_alive = false;
    if (timed_out_) {
      co_await refuse(408, "The request's header did not come in time.");
    } else if (error == http::error::header_limit) {
      if (parser.get().target().empty()) {
        co_await refuse(414, target_limit_text());
      } else {
        co_await refuse(431, fmt::format("The request's headers are longer than {} bytes.",
                                         context_->limits.max_header_bytes));
      }
    } else if (error == http::error::body_limit) {
      co_await refuse(413, body_limit_text());
    } else if (is_malformed(error)) {
      co_await refuse(400, "The request is not valid HTTP/1.1.");
    }
    co_return false;
  }

  std::string target_limit_text() const {
    return fmt::format("The request's address is longer than {} bytes.",
                       context_->limits.max_target_bytes);
  }
  std::string body_limit_text() const {
    return fmt::format("The request's body is longer than {} bytes.",
                       context_->limits.max_body_bytes);
  }

  HttpReply fault(int status, const std::string& message) const {
    HttpReply out;
    out.status = status;
    out.body = context_->handlers.error_body(status, message);
    out.closes = true;
    return out;
  }

  /// Fills `request` but for its body. A fault of the header as a whole is the answer.
  std::optional<HttpReply> read_head(Parser& parser, HttpRequest& request) {
    auto& message = parser.get();
    request.id = request_id_;
    request.client = client_;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    if (request.target.size() > context_->limits.max_target_bytes) {
      return fault(414, target_limit_text());
    }
    int num_headers = 0;
    int num_hosts = 0;
    for (const auto& field : message) {
      if (++num_headers > context_->limits.max_headers) {
        return fault(431, fmt::format("The request has more than {} headers.",
                                      context_->limits.max_headers));
      }
      std::string name(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      num_hosts += name == "host" ? 1 : 0;
      request.headers.push_back({std::move(name), std::string(field.value())});
    }
    if (num_hosts != 1 && !(framing_.is_http_1_0 && num_hosts == 0)) {
      return fault(400, "The request needs one Host header.");
    }
    if (!split_target(request.target, request.path, request.query)) {
      return fault(400, "The request's address is malformed.");
    }
    if (const auto coding = coding_fault(request)) return coding;
    if (const auto expect = request.header("expect"); !expect.empty() && !is_go_on(expect)) {
      return fault(417, "The request expects what this server does not do.");
    }
    return charge_body(parser);
  }

  /// Of a body in a coding that is not understood nobody knows the end: what follows it must not be
  /// taken for a request.
  std::optional<HttpReply> coding_fault(const HttpRequest& request) const {
    int num_codings = 0;
    for (const HttpHeader& each : request.headers) {
      if (each.name != "transfer-encoding") continue;
      if (++num_codings > 1 || !boost::beast::iequals(each.value, "chunked")) {
        return fault(501, "Of transfer codings this server knows \"chunked\" alone.");
      }
    }
    if (num_codings > 0 && framing_.is_http_1_0) {
      return fault(400, "HTTP/1.0 has no transfer codings.");
    }
    return std::nullopt;
  }

  std::optional<HttpReply> charge_body(Parser& parser) {
    const auto length = parser.content_length();
    if (length && *length > context_->limits.max_body_bytes) return fault(413, body_limit_text());
    if (charge(length ? *length : 0)) return std::nullopt;
    return fault(503, "Too many requests are being read; try again in a second.");
  }

  /// More bytes of a body; whether there is room for them. They count as long as the body is there.
  bool charge(size_t num_bytes) {
    if (!charge_) charge_ = std::make_shared<BodyCharge>(context_);
    return charge_->add(num_bytes);
  }

  asio::awaitable<bool> read_body(Parser& parser) {
    set_deadline(context_->limits.body_time);
    if (is_go_on(parser.get()[http::field::expect])) {
      std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      if (!co_await send(go_on)) co_return false;
      set_deadline(context_->limits.body_time);
    }
    const bool has_length = parser.content_length().has_value();
    size_t num_read = 0;
    while (!parser.is_done()) {
      const auto [error, ignored] =
          co_await http::async_read_some(*stream_, buffer_, parser, kAwait);
      if (is_closed_) co_return false;
      if (error && error != http::error::need_buffer) {
        co_await answer_body_fault(error);
        co_return false;
      }
      const size_t size = parser.get().body().size();
      if (!has_length && !charge(size - num_read)) {
        framing_.keeps_alive = false;
        co_await refuse(503, "Too many requests are being read; try again in a second.");
        co_return false;
      }
      num_read = size;
    }
    co_return true;
  }

  asio::awaitable<void> answer_body_fault(const ErrorCodeOf error) {
    end_deadline();
    framing_.keeps_alive = false;
    if (timed_out_) {
      co_await refuse(408, "The request's body did not come in time.");
    } else if (error == http::error::body_limit) {
      co_await refuse(413, body_limit_text());
    } else if (is_malformed(error)) {
      co_await refuse(400, "The request's body is not valid HTTP/1.1.");
    }
  }

  asio::awaitable<void> refuse(int status, std::string message) {
    framing_.keeps_alive = false;
    const HttpReply reply = fault(status, message);
    co_await send_refusal(reply, false);
  }

  /// Whether the connection goes on.
  asio::awaitable<bool> send_refusal(const HttpReply& reply, bool is_read) {
    std::string bytes = reply_head(reply, context_->handlers.headers, reply.body.size(), framing_);
    if (framing_.has_body) bytes += reply.body;
    charge_.reset();
    ++num_served_;
    if (!co_await send(bytes)) co_return false;
    if (framing_.keeps_alive) co_return true;
    if (!is_read) co_await linger();
    co_return false;
  }

  /// A client that still sends would lose the answer if the connection was closed before.
  asio::awaitable<void> linger() {
    ErrorCodeOf ignored;
    stream_->socket().shutdown(RawSocket::shutdown_send, ignored);
    set_deadline(kLingerTime);
    buffer_.clear();
    std::string waste(kReadBytes, '\0');
    for (size_t num_read = 0; num_read < kLingerBytes;) {
      const auto [error, size] = co_await stream_->async_read_some(asio::buffer(waste), kAwait);
      if (error || is_closed_) break;
      num_read += size;
    }
    end_deadline();
  }

  asio::awaitable<bool> answer(HttpRequest request) {
    ++context_->num_exchanges;
    ++num_served_;
    auto executor = stream_->get_executor();
    exchange_ = std::make_shared<ExchangeState>(
        std::move(request), context_->workers,
        [self = weak_from_this(), executor] {
          asio::post(executor, [self] {
            if (const auto session = self.lock()) session->wake_.cancel();
          });
        },
        context_->handlers.error_body, std::move(charge_));
    is_gone_ = false;
    watch();
    context_->handlers.handle(make_exchange(exchange_));
    const ExchangeEnd end = co_await send_answer();
    stop_watching();
    end_exchange(end);
    if (end == ExchangeEnd::client_gone) ++context_->clients_gone;
    if (end == ExchangeEnd::client_stuck) ++context_->slow_clients;
    co_return end == ExchangeEnd::complete&& framing_.keeps_alive && !is_closed_;
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
      if (is_gone_) co_return ExchangeEnd::client_gone;
      if (out.is_cut || is_closed_) co_return ExchangeEnd::cut;
      std::string bytes;
      if (out.head) {
        head = std::move(*out.head);
        is_stream = !out.is_whole;
        context_->handlers.decorate(exchange_->request(), head.reply);
        if (head.reply.closes || context_->is_draining) framing_.keeps_alive = false;
        if (is_stream && framing_.is_http_1_0) framing_.keeps_alive = false;
        bytes =
            reply_head(head.reply, context_->handlers.headers,
                       is_stream ? std::nullopt : std::optional(head.reply.body.size()), framing_);
        if (!is_stream && framing_.has_body) bytes += head.reply.body;
      }
      if (is_stream) append_stream(bytes, out.bytes, out.is_last);
      if (!bytes.empty()) {
        if (!co_await send(bytes)) {
          co_return timed_out_ ? ExchangeEnd::client_stuck : ExchangeEnd::client_gone;
        }
        exchange_->sent(out.bytes.size());
      }
      if (out.is_last) co_return ExchangeEnd::complete;
      if (bytes.empty() && co_await wait_for_more(is_stream ? head.idle_after : Milliseconds(0))) {
        exchange_->write(head.idle_chunk);
      }
    }
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

  /// Sends all; false where the connection is at its end, or nothing moved for too long.
  asio::awaitable<bool> send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      set_deadline(context_->limits.stall_time);
      const auto [error, size] = co_await stream_->async_write_some(
          asio::buffer(bytes.data() + at, bytes.size() - at), kAwait);
      if (error || is_closed_) co_return false;
      at += size;
      context_->bytes_sent += static_cast<int64_t>(size);
    }
    end_deadline();
    co_return true;
  }

  // While a request is answered nobody reads; but the client's end must be seen.
  void watch() {
    is_watching_ = true;
    const int64_t turn = ++watch_turn_;
    stream_->socket().async_wait(RawSocket::wait_read,
                                 [self = weak_from_this(), turn](const ErrorCodeOf& error) {
                                   const auto session = self.lock();
                                   if (!session || session->watch_turn_ != turn) return;
                                   if (!error) session->look();
                                   if (error && error != asio::error::operation_aborted) {
                                     session->see_gone();
                                   }
                                 });
  }
  void look() {
    if (!is_watching_) return;
    if (peer_has_closed(stream_->socket().native_handle())) {
      see_gone();
      return;
    }
    // Bytes of the next request: they make the socket readable as long as they are there.
    look_.expires_after(kLookAgain);
    look_.async_wait([self = weak_from_this(), turn = watch_turn_](const ErrorCodeOf& error) {
      const auto session = self.lock();
      if (!error && session && session->watch_turn_ == turn) session->look();
    });
  }
  void see_gone() {
    is_gone_ = true;
    ErrorCodeOf ignored;
    stream_->socket().cancel(ignored);
    wake_.cancel();
  }
  void stop_watching() {
    is_watching_ = false;
    ++watch_turn_;
    look_.cancel();
    ErrorCodeOf ignored;
    stream_->socket().cancel(ignored);
  }

  std::shared_ptr<SessionContext> context_;
  std::unique_ptr<AnyStream> stream_;
  const std::string client_;
  std::list<std::weak_ptr<Session>>::iterator place_;
  boost::beast::flat_buffer buffer_;
  asio::steady_timer deadline_;
  asio::steady_timer wake_;
  asio::steady_timer look_;
  std::shared_ptr<ExchangeState> exchange_;
  std::string request_id_;
  ReplyFraming framing_;
  std::shared_ptr<BodyCharge> charge_;
  bool is_listed_ = false;
  int64_t deadline_turn_ = 0;
  int64_t watch_turn_ = 0;
  int64_t num_served_ = 0;
  bool timed_out_ = false;
  bool is_idle_ = false;
  bool is_closed_ = false;
  bool is_watching_ = false;
  bool is_gone_ = false;
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
