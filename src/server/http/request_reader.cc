// See request_reader.h.
#include "server/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/read.hpp>
#include <utility>

namespace headrace::server {
namespace http = boost::beast::http;

namespace {

/// A buffer that grew beyond this is given back between two requests.
constexpr size_t kKeptBufferBytes = 64 << 10;
/// Of a connection's buffer beyond the longest header: what stands around a chunk of a body.
constexpr size_t kBufferSlack = 64 << 10;
constexpr size_t kFirstBytes = 1024;

/// What was sent is no HTTP, as against a connection that ended.
bool is_malformed(const ErrorCodeOf& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

}  // namespace

RequestReader::RequestReader(std::shared_ptr<SessionContext> context,
                             std::shared_ptr<Connection> connection, Milliseconds header_time)
    : context_(std::move(context)),
      connection_(std::move(connection)),
      header_time_(header_time),
      buffer_(context_->limits.max_header_bytes + kBufferSlack) {}

ReadEnd RequestReader::fail(HttpFault fault) {
  fault_ = std::move(fault);
  return ReadEnd::faulty;
}

asio::awaitable<ReadEnd> RequestReader::wait_for_bytes(bool is_first) {
  request_ = {};
  parser_.reset();
  charge_.reset();
  int num_empty_lines = kMaxEmptyLines;
  if (drop_empty_lines(num_empty_lines)) co_return ReadEnd::whole;
  if (buffer_.capacity() > kKeptBufferBytes) buffer_.shrink_to_fit();
  connection_->set_deadline(is_first ? header_time_ : limits().idle_time);
  while (!drop_empty_lines(num_empty_lines)) {
    const auto [error, size] =
        co_await connection_->stream().async_read_some(buffer_.prepare(kFirstBytes), kAwait);
    if (connection_->is_closed()) co_return ReadEnd::gone;
    if (error) {
      connection_->end_deadline();
      co_return is_first ? fail_first() : ReadEnd::gone;
    }
    buffer_.commit(size);
  }
  connection_->end_deadline();
  co_return ReadEnd::whole;
}

bool RequestReader::drop_empty_lines(int& left) {
  while (left > 0 && unread().starts_with(kEmptyLine)) {
    buffer_.consume(kEmptyLine.size());
    --left;
  }
  // Half an empty line says nothing yet.
  return buffer_.size() > 0 && !(left > 0 && unread() == "\r");
}

ReadEnd RequestReader::fail_first() {
  if (!connection_->timed_out()) return ReadEnd::gone;
  return fail({408, "The request's header did not come in time."});
}

asio::awaitable<ReadEnd> RequestReader::read_head() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits().max_header_bytes));
  parser_->body_limit(limits().max_body_bytes);
  connection_->set_deadline(header_time_);
  const auto [error, ignored] =
      co_await http::async_read_header(connection_->stream(), buffer_, *parser_, kAwait);
  connection_->end_deadline();
  if (connection_->is_closed()) co_return ReadEnd::gone;
  const bool has_path = take_head();
  co_return error ? fail_head(error) : check_head(has_path);
}

ReadEnd RequestReader::check_head(bool has_path) {
  if (auto fault = head_fault(request_, has_path, is_http_1_0(), limits())) {
    return fail(std::move(*fault));
  }
  const auto length = parser_->content_length();
  if (length && *length > limits().max_body_bytes) return fail(body_too_long(limits()));
  charge_ = std::make_shared<BodyCharge>(context_);
  return ReadEnd::whole;
}

bool RequestReader::take_head() {
  const auto& message = parser_->get();
  request_.method = std::string(message.method_string());
  request_.target = std::string(message.target());
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    request_.headers.push_back({std::move(name), std::string(field.value())});
  }
  return take_target(request_);
}

ReadEnd RequestReader::fail_head(const ErrorCodeOf& error) {
  if (connection_->timed_out()) return fail({408, "The request's header did not come in time."});
  if (error == http::error::header_limit) {
    return fail(request_.target.empty() ? target_too_long(limits()) : header_too_long(limits()));
  }
  if (error == http::error::body_limit) return fail(body_too_long(limits()));
  if (is_malformed(error)) return fail({400, "The request is not valid HTTP/1.1."});
  return ReadEnd::gone;
}

ReadEnd RequestReader::check_room(size_t num_bytes, size_t num_before) {
  return charge_->add(num_bytes - num_before) ? ReadEnd::whole : fail(too_many_bodies());
}

bool RequestReader::drop_body() {
  const auto length = parser_->content_length();
  if (!length || *length > buffer_.size()) return false;
  buffer_.consume(static_cast<size_t>(*length));
  return true;
}

asio::awaitable<ReadEnd> RequestReader::read_body() {
  if (!is_done() && asks_to_go_on(request_.header("expect"))) {
    const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    if (!co_await connection_->send(go_on)) co_return ReadEnd::gone;
  }
  connection_->set_deadline(limits().body_time);
  size_t num_read = 0;
  while (!is_done()) {
    const auto [error, ignored] =
        co_await http::async_read_some(connection_->stream(), buffer_, *parser_, kAwait);
    if (connection_->is_closed()) co_return ReadEnd::gone;
    if (error && error != http::error::need_buffer) co_return fail_body(error);
    const size_t size = parser_->get().body().size();
    if (check_room(size, num_read) != ReadEnd::whole) co_return ReadEnd::faulty;
    num_read = size;
  }
  connection_->end_deadline();
  request_.body = std::move(parser_->get().body());
  co_return ReadEnd::whole;
}

ReadEnd RequestReader::fail_body(const ErrorCodeOf& error) {
  connection_->end_deadline();
  if (connection_->timed_out()) return fail({408, "The request's body did not come in time."});
  if (error == http::error::body_limit) return fail(body_too_long(limits()));
  if (is_malformed(error)) return fail({400, "The request's body is not valid HTTP/1.1."});
  return ReadEnd::gone;
}

}  // namespace headrace::server
