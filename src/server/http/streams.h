// The two kinds of AnyStream. Only for the files of this folder that include Boost.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "headrace/result.h"
#include "server/http/any_stream.h"
#include "server/http/http_server.h"

namespace headrace::server {

std::unique_ptr<AnyStream> make_plain_stream(RawSocket socket);
std::unique_ptr<AnyStream> make_tls_stream(RawSocket socket, asio::ssl::context& context);

/// TLS 1.2 and up. Errors (invalid_argument): the files cannot be read, or do not belong together.
Result<std::unique_ptr<asio::ssl::context>> make_tls_context(const TlsFiles& files);

}  // namespace headrace::server
