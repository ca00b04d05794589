// What a request and a reply are to the server's own code. Must not know sockets or Beast.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::server {

struct HttpHeader {
  std::string name;  ///< of requests in lower case
  std::string value;
};

struct HttpRequest {
  std::string method;  ///< "GET"
  std::string target;  ///< as it was sent
  std::string path;    ///< of it, percent-decoded
  std::string query;   ///< of it, as sent, without the '?'
  std::vector<HttpHeader> headers;
  std::string body;
  std::string client;  ///< "127.0.0.1:4711", or "unix"
  std::string id;      ///< ours, one a request: "req-..."; each reply carries it as x-request-id

  /// The first of that name (in lower case), or "".
  std::string_view header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<HttpHeader> headers{};  ///< besides type, length, request id and connection
  std::string body{};
  bool closes = false;  ///< the connection ends behind it
};

/// What a target's path and query are, decoded; false where an escape is broken or a byte is no
/// text of a path (control characters, NUL).
bool split_target(std::string_view target, std::string& path, std::string& query);

/// The reason phrase of a status: "Not Found".
std::string_view reason_phrase(int status);

}  // namespace headrace::server
