// See request_head.h.
#include "server/http/request_head.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::server {
namespace {

bool is_same_word(std::string_view text, std::string_view in_lower_case) {
  const auto is_same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  };
  return std::equal(text.begin(), text.end(), in_lower_case.begin(), in_lower_case.end(), is_same);
}

std::optional<HttpFault> coding_fault(const HttpRequest& request, bool is_http_1_0) {
  int num_codings = 0;
  for (const HttpHeader& each : request.headers) {
    if (each.name != "transfer-encoding") continue;
    if (++num_codings > 1 || !is_same_word(each.value, "chunked")) {
      return HttpFault{501, "Of transfer codings this server knows \"chunked\" alone."};
    }
  }
  if (num_codings > 0 && is_http_1_0) return HttpFault{400, "HTTP/1.0 has no transfer codings."};
  return std::nullopt;
}

/// A body that came compressed would be read as if it was plain.
std::optional<HttpFault> encoding_fault(const HttpRequest& request) {
  const std::string_view length = request.header("content-length");
  const bool has_body = !request.header("transfer-encoding").empty() ||
                        (!length.empty() && length.find_first_not_of('0') != length.npos);
  if (!has_body) return std::nullopt;
  for (const HttpHeader& each : request.headers) {
    if (each.name != "content-encoding" || each.value.empty()) continue;
    if (!is_same_word(each.value, "identity")) {
      return HttpFault{415,
                       "This server reads bodies that are not compressed: leave "
                       "Content-Encoding out, or send identity."};
    }
  }
  return std::nullopt;
}

}  // namespace

bool asks_to_go_on(std::string_view expect) {
  return is_same_word(expect, "100-continue");
}

bool take_target(HttpRequest& request) {
  if (split_target(request.target, request.path, request.query)) return true;
  request.path = request.target.substr(0, request.target.find_first_of("?#"));
  request.query.clear();
  return false;
}

std::optional<HttpFault> head_fault(const HttpRequest& request, bool has_path, bool is_http_1_0,
                                    const HttpLimits& limits) {
  if (request.target.size() > limits.max_target_bytes) return target_too_long(limits);
  if (request.headers.size() > static_cast<size_t>(limits.max_headers)) {
    return HttpFault{431, fmt::format("The request has more than {} headers.", limits.max_headers)};
  }
  const auto num_hosts = std::count_if(request.headers.begin(), request.headers.end(),
                                       [](const HttpHeader& each) { return each.name == "host"; });
  if (num_hosts != 1 && !(is_http_1_0 && num_hosts == 0)) {
    return HttpFault{400, "The request needs one Host header."};
  }
  if (!has_path) return HttpFault{400, "The request's address is malformed."};
  if (auto fault = coding_fault(request, is_http_1_0)) return fault;
  if (auto fault = encoding_fault(request)) return fault;
  if (const auto expect = request.header("expect"); !expect.empty() && !asks_to_go_on(expect)) {
    return HttpFault{417, "The request expects what this server does not do."};
  }
  return std::nullopt;
}

HttpFault target_too_long(const HttpLimits& limits) {
  return {414,
          fmt::format("The request's address is longer than {} bytes.", limits.max_target_bytes)};
}

HttpFault header_too_long(const HttpLimits& limits) {
  return {431,
          fmt::format("The request's headers are longer than {} bytes.", limits.max_header_bytes)};
}

HttpFault body_too_long(const HttpLimits& limits) {
  return {413, fmt::format("The request's body is longer than {} bytes.", limits.max_body_bytes)};
}

HttpFault too_many_bodies() {
  return {503, "Too many requests are being read; try again in a second."};
}

}  // namespace headrace::server
