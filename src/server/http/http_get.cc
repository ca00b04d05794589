// See http_get.h.
#include "server/http/http_get.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace headrace::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using GetRequest = http::request<http::empty_body>;
using GetParser = http::response_parser<http::string_body>;

constexpr size_t kMostBytes = 64 << 20;
constexpr std::chrono::seconds kWholeTime{60};

struct Url {
  bool has_tls = false;
  std::string host;       ///< without brackets
  std::string host_port;  ///< as a Host header has it
  std::string port;
  std::string target;
};

std::optional<Url> parsed_url(std::string_view text) {
  Url out;
  if (text.starts_with("https://")) {
    out.has_tls = true;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return std::nullopt;
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) return std::nullopt;
  }
  const size_t slash = std::min(text.find_first_of("/?#"), text.size());
  out.host_port = text.substr(0, slash);
  out.target = text.substr(slash);
  if (!out.target.starts_with('/')) out.target.insert(0, "/");
  const size_t bracket = out.host_port.find(']');
  const size_t colon = out.host_port.find(':', bracket == out.host_port.npos ? 0 : bracket);
  out.host = out.host_port.substr(0, colon);
  if (out.host.starts_with('[')) out.host = out.host.substr(1, out.host.size() - 2);
  out.port =
      colon == out.host_port.npos ? out.has_tls ? "443" : "80" : out.host_port.substr(colon + 1);
  if (out.host.empty() || out.port.empty() || out.host.find('@') != out.host.npos) {
    return std::nullopt;
  }
  return out;
}

std::string shown_url(const std::string& url) {
  constexpr size_t kLongest = 200;
  std::string out;
  for (const char c : url.substr(0, kLongest)) {
    out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  return out;
}

template <class AnyOf>
asio::awaitable<void> exchange_on(AnyOf& stream, const GetRequest& request, GetParser& parser) {
  beast::flat_buffer buffer;
  co_await http::async_write(stream, request, asio::use_awaitable);
  co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
}

/// Whom a server must prove to be.
Result<void> set_trust(const HttpGetOptions& options, asio::ssl::context& context) {
  if (!options.checks_certificate) {
    context.set_verify_mode(asio::ssl::verify_none);
    return {};
  }
  boost::system::error_code error;
  context.set_verify_mode(asio::ssl::verify_peer);
  context.set_default_verify_paths(error);
  if (options.ca_certificates.empty()) return {};
  context.load_verify_file(options.ca_certificates, error);
  if (!error) return {};
  return Error{ErrorCode::invalid_argument, "has no certificates: " + error.message(),
               options.ca_certificates, "give a PEM file"};
}

asio::awaitable<void> fetch(const Url& url, asio::ssl::context& context, bool checks_name,
                            const GetRequest& request, GetParser& parser) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto found = co_await resolver.async_resolve(url.host, url.port, asio::use_awaitable);
  if (!url.has_tls) {
    beast::tcp_stream stream(executor);
    co_await stream.async_connect(found, asio::use_awaitable);
    co_await exchange_on(stream, request, parser);
    co_return;
  }
  beast::ssl_stream<beast::tcp_stream> stream(executor, context);
  if (checks_name) stream.set_verify_callback(asio::ssl::host_name_verification(url.host));
  SSL_set_tlsext_host_name(stream.native_handle(), url.host.c_str());
  co_await beast::get_lowest_layer(stream).async_connect(found, asio::use_awaitable);
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
  co_await exchange_on(stream, request, parser);
}

std::string fetch_hint(const boost::system::error_code& code) {
  if (code == asio::error::connection_refused) return "is 'headrace serve' running there?";
  const bool is_tls = code.category() == asio::error::get_ssl_category();
  return is_tls ? "a certificate of your own: --cacert FILE, or --insecure" : "";
}

Error fetch_error(const boost::system::error_code& code, const std::string& url) {
  const std::string where = shown_url(url);
  if (code == http::error::body_limit) {
    return {ErrorCode::out_of_range, "the answer is longer than 64 MiB", where, ""};
  }
  return {ErrorCode::io_error, code.message(), where, fetch_hint(code)};
}

}  // namespace

Result<HttpAnswer> http_get(const std::string& url, const HttpGetOptions& options) {
  const std::string& api_key = options.api_key;
  if (api_key.find_first_of("\r\n") != api_key.npos) {
    return Error{ErrorCode::invalid_argument, "an API key is one line", "--api-key", ""};
  }
  const auto parsed = parsed_url(url);
  if (!parsed) {
    return Error{ErrorCode::invalid_argument, "expected an address as http://127.0.0.1:8080",
                 shown_url(url), ""};
  }
  GetRequest request(http::verb::get, parsed->target, 11);
  request.set(http::field::host, parsed->host_port);
  request.set(http::field::user_agent, "headrace");
  request.set(http::field::connection, "close");
  if (!api_key.empty()) request.set(http::field::authorization, "Bearer " + api_key);
  GetParser parser;
  parser.body_limit(kMostBytes);
  asio::ssl::context context(asio::ssl::context::tls_client);
  HEADRACE_TRY(set_trust(options, context));
  asio::io_context io;
  std::exception_ptr fault;
  bool is_done = false;
  asio::co_spawn(io, fetch(*parsed, context, options.checks_certificate, request, parser),
                 [&](std::exception_ptr thrown) {
                   fault = std::move(thrown);
                   is_done = true;
                 });
  io.run_for(kWholeTime);
  if (!is_done) {
    return Error{ErrorCode::deadline_exceeded, "no answer in a minute", shown_url(url), ""};
  }
  try {
    if (fault) std::rethrow_exception(fault);
  } catch (const boost::system::system_error& thrown) {
    return fetch_error(thrown.code(), url);
  } catch (const std::exception& thrown) {
    return Error{ErrorCode::io_error, thrown.what(), shown_url(url), ""};
  }
  HttpAnswer answer;
  answer.status = static_cast<int>(parser.get().result_int());
  answer.body = std::move(parser.get().body());
  return answer;
}

std::string path_segment(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (is_plain) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

}  // namespace headrace::server
