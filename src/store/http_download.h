// HTTP by libcurl: one GET or HEAD, redirects followed by hand. All that knows curl is in
// http_download.cc. Must not know what is fetched, nor try again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "headrace/result.h"

namespace headrace {

struct HttpAnswer {
  int status = 0;
  std::string url;  ///< the last one of the redirects
  /// Of the last answer, names in lower case; the last of equal names.
  std::map<std::string, std::string> headers;
  /// The same of the first answer, where a redirect came: what a hub says of a file is there.
  std::map<std::string, std::string> first_headers;

  /// "" where it is absent.
  std::string header(const std::string& name) const;
};

struct HttpRequest {
  std::string url;
  bool head = false;     ///< HEAD, without a body
  std::string token;     ///< a bearer token for this address' host, and for no other; may be empty
  uint64_t from = 0;     ///< the first byte wanted
  std::string if_range;  ///< with `from`: the ETag or date that must still be true; may be empty
  bool stay_on_host = false;  ///< a redirect to another host is the answer
  int stall_seconds = 30;     ///< it fails where nothing comes for as long
  /// Before the first byte of an answer of 2xx. An error ends the request.
  std::function<Result<void>(const HttpAnswer&)> begin;
  /// The body of an answer of 2xx, in pieces. An error ends the request.
  std::function<Result<void>(std::span<const std::byte>)> sink;
  /// Asked about ten times a second; false ends the request.
  std::function<bool()> keep_going;
};

struct HttpOutcome {
  /// The last answer, whatever its status; what of it came, where there is an error.
  HttpAnswer answer;
  std::string error_body;      ///< of another status than 2xx, the first 4 kB
  std::optional<Error> error;  ///< no answer, or not all of it
  bool is_transient = false;   ///< with an error: another try may well do
};

/// Runs the request. Proxies come from the environment (http_proxy, https_proxy, all_proxy,
/// no_proxy), certificates from CURL_CA_BUNDLE, SSL_CERT_FILE, REQUESTS_CA_BUNDLE or SSL_CERT_DIR,
/// else the system's. At most ten redirects, none from https to http, none to anything but them.
/// Errors: io_error, cancelled, those of the callbacks.
HttpOutcome http_run(const HttpRequest& request);

/// "Retry-After" in seconds from now: of a number, or a date. Nothing where it is neither.
std::optional<int64_t> retry_after_seconds(const std::string& value);

/// "a%20b": all but letters, digits and `-._~/` as escapes.
std::string url_escaped(const std::string& path);

}  // namespace headrace
