// What a request's header must be before anybody looks at the request. Must not know sockets, Beast
// or routes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"
#include "server/http/http_server.h"

namespace headrace::server {

/// Why a request gets no further, to be said to its client.
struct HttpFault {
  int status = 0;
  std::string message;
};

/// "100-continue", in letters of either case.
bool asks_to_go_on(std::string_view expect);

/// Sets path and query from the target, and tells whether it is well-formed: of one that is not the
/// path is as it was sent, for the log.
bool take_target(HttpRequest& request);

/// What is wrong with a header that was read in whole, if anything; `has_path`: what take_target()
/// told. Of a body whose coding is not understood nobody knows the end, so that what follows it
/// must not be taken for a request: the connection ends behind all of these.
std::optional<HttpFault> head_fault(const HttpRequest& request, bool has_path, bool is_http_1_0,
                                    const HttpLimits& limits);

// Faults that are found in more than one place.
HttpFault target_too_long(const HttpLimits& limits);
HttpFault header_too_long(const HttpLimits& limits);
HttpFault body_too_long(const HttpLimits& limits);
HttpFault too_many_bodies();

}  // namespace headrace::server
