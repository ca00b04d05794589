// One GET request, for commands that ask a running server. Must not know what is asked for.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace::server {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// GETs `url` (http or https) with "Authorization: Bearer `api_key`" where that is not empty;
/// follows no redirects, goes through no proxy, and has a minute. Errors: invalid_argument (no such
/// URL), io_error (nobody answers, with the reason), out_of_range (an answer over 64 MiB). An
/// answer of any status is no error.
Result<HttpAnswer> http_get(const std::string& url, const std::string& api_key);

/// `text` as one segment of a path.
std::string path_segment(const std::string& text);

}  // namespace headrace::server
