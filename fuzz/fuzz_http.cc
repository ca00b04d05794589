// Whatever a client sends, in whatever pieces: the server lives, and what it sends back is HTTP.
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "server/http/session.h"
#include "server/http/streams.h"

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using headrace::server::Exchange;
using headrace::server::HttpReply;
using headrace::server::HttpRequest;
using Local = asio::local::stream_protocol;

std::shared_ptr<headrace::server::SessionContext> make_context() {
  auto context = std::make_shared<headrace::server::SessionContext>();
  context->limits.max_body_bytes = 4096;
  context->limits.max_body_bytes_of_all = 8192;
  context->limits.max_header_bytes = 2048;
  context->limits.max_headers = 16;
  context->limits.max_target_bytes = 256;
  context->workers = std::make_shared<headrace::server::Workers>(1, 1);
  context->handlers.gate = [](const HttpRequest& request) -> std::optional<HttpReply> {
    if (request.path != "/refused") return std::nullopt;
    HttpReply out;
    out.status = 403;
    return out;
  };
  context->handlers.handle = [](std::shared_ptr<Exchange> exchange) {
    const HttpRequest& request = exchange->request();
    if (request.path == "/stream") {
      exchange->begin({});
      exchange->write(request.body);
      exchange->write("\r\n0\r\n\r\n");
      exchange->end();
      return;
    }
    HttpReply out;
    out.headers.push_back({"X-Path", request.path});
    out.body = exchange->take_body();
    exchange->reply(std::move(out));
  };
  context->handlers.refusal = [](const HttpRequest& request, int status,
                                 const std::string& message) {
    HttpReply out;
    out.status = status;
    out.headers.push_back({"X-Path", request.path});
    out.body = message;
    return out;
  };
  context->handlers.is_probe = [](const HttpRequest& request) { return request.path == "/livez"; };
  context->handlers.crowded = [](const HttpRequest& /*request*/) {
    HttpReply out;
    out.status = 503;
    return out;
  };
  context->handlers.error_body = [](const HttpRequest& /*request*/, int status,
                                    const std::string& message) {
    return std::to_string(status) + message;
  };
  context->handlers.decorate = [](const HttpRequest&, HttpReply&) {};
  return context;
}

/// All of it must be replies, one after the other; the last may be cut.
void check_replies(const std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    http::response_parser<http::string_body> parser;
    parser.body_limit(1 << 20);
    parser.eager(true);
    // Nobody here asks for HEAD or 100 Continue in a way that the reader could know.
    boost::system::error_code error;
    const size_t used = parser.put(asio::buffer(bytes.data() + at, bytes.size() - at), error);
    if (error == http::error::need_more) return;
    if (error) std::abort();
    at += used;
    if (!parser.is_done() || used == 0) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 16384) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  asio::io_context io(1);
  const auto context = make_context();
  Local::socket ours(io);
  Local::socket theirs(io);
  asio::local::connect_pair(ours, theirs);
  ours.non_blocking(true);
  theirs.non_blocking(true);
  headrace::server::start_session(
      context, headrace::server::make_plain_stream(headrace::server::RawSocket(std::move(theirs))),
      "fuzz", false);
  std::string got;
  const auto read_all = [&] {
    char buffer[65536];
    boost::system::error_code error;
    while (!error) {
      const size_t count = ours.read_some(asio::buffer(buffer), error);
      got.append(buffer, count);
    }
  };
  // '\xff' ends a piece: what follows comes later.
  size_t begin = 0;
  while (begin <= all.size()) {
    const size_t end = std::min(all.find('\xff', begin), all.size());
    boost::system::error_code error;
    if (end > begin) asio::write(ours, asio::buffer(all.data() + begin, end - begin), error);
    io.poll();
    io.restart();
    read_all();
    begin = end + 1;
  }
  boost::system::error_code ignored;
  ours.shutdown(Local::socket::shutdown_send, ignored);
  io.poll();
  io.restart();
  read_all();
  headrace::server::end_sessions(*context, true);
  io.poll();
  context->workers->join();
  const bool is_plain = all.find("HEAD") == all.npos && all.find("ontinue") == all.npos;
  if (is_plain) check_replies(got);
  return 0;
}
