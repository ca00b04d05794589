// Reads the requests of a connection, one after the other, within the limits of size and time. Only
// for the files of this folder that include Boost. Must not know what becomes of a request.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/connection.h"
#include "server/http/growing_body.h"
#include "server/http/request_head.h"
#include "server/http/session.h"

namespace headrace::server {

/// How the reading of a part of a request went.
enum class ReadEnd {
  whole,
  faulty,  ///< see fault()
  gone,    ///< the connection is at its end; there is nobody to tell
};

/// All of it belongs to the I/O thread.
class RequestReader {
 public:
  /// `header_time`: for a header, and for the first bytes of a connection.
  RequestReader(std::shared_ptr<SessionContext> context, std::shared_ptr<Connection> connection,
                Milliseconds header_time);

  /// Whether something of the next request is there; an empty line is none.
  bool has_bytes() const { return buffer_.size() > 0 && unread() != kEmptyLine; }
  /// Waits for the first bytes of a request. Who says nothing on a new connection is told why it
  /// ends.
  asio::awaitable<ReadEnd> wait_for_bytes(bool is_first);
  asio::awaitable<ReadEnd> read_head();
  /// The rest of it, if any, into the request; says "100 Continue" where that was asked for.
  asio::awaitable<ReadEnd> read_body();

  /// As much of it as was read, of a faulty one too; without client and id.
  HttpRequest& request() { return request_; }
  const HttpFault& fault() const { return fault_; }
  bool is_http_1_0() const { return parser_ && parser_->get().version() < 11; }
  bool keeps_alive() const { return parser_->keep_alive(); }
  /// Whether all of the request is read.
  bool is_done() const { return parser_ && parser_->is_done(); }
  /// Whether the body had come with the header; it is gone then.
  bool drop_body();
  /// Room that the body takes, as long as the object lives.
  std::shared_ptr<BodyCharge> take_charge() { return std::move(charge_); }

 private:
  using Parser = boost::beast::http::request_parser<GrowingBody>;

  static constexpr std::string_view kEmptyLine = "\r\n";
  /// In front of a request; more of them are none of HTTP.
  static constexpr int kMaxEmptyLines = 4;

  std::string_view unread() const {
    return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
  }
  /// Drops empty lines, `left` at most, as RFC 9112, 2.2 wants it: some clients send one behind a
  /// body. Whether there is something else.
  bool drop_empty_lines(int& left);

  // None of these is a coroutine: g++ 12 miscompiles what is put together in one.
  ReadEnd fail(HttpFault fault);
  ReadEnd fail_first();
  ReadEnd fail_head(const ErrorCodeOf& error);
  ReadEnd fail_body(const ErrorCodeOf& error);
  ReadEnd check_head(bool has_path);
  /// For a body so long by now; `num_before`: when this was asked last.
  ReadEnd check_room(size_t num_bytes, size_t num_before);
  /// What there is of the header; whether its address is well-formed.
  bool take_head();
  const HttpLimits& limits() const { return context_->limits; }

  const std::shared_ptr<SessionContext> context_;
  const std::shared_ptr<Connection> connection_;
  const Milliseconds header_time_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpRequest request_;
  HttpFault fault_;
  std::shared_ptr<BodyCharge> charge_;
};

}  // namespace headrace::server
