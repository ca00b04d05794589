// One GET request, for commands that ask a running server. Must not know what is asked for.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace::server {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

struct HttpGetOptions {
  std::string api_key{};           ///< "Authorization: Bearer" this; "": none
  std::string ca_certificates{};   ///< a PEM file, besides the system's: whom https may trust
  bool checks_certificate = true;  ///< else https may be anybody
};

/// GETs `url` (http or https); follows no redirects, goes through no proxy, and has a minute.
/// Errors: invalid_argument (no such URL, the file of certificates), io_error (nobody answers, with
/// the reason), out_of_range (an answer over 64 MiB). An answer of any status is no error.
Result<HttpAnswer> http_get(const std::string& url, const HttpGetOptions& options);

/// `text` as one segment of a path.
std::string path_segment(const std::string& text);

}  // namespace headrace::server
