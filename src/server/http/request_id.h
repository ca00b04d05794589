// Names for requests and answers that nobody can guess or meet twice. Must not know sockets.
#pragma once

#include <string>
#include <string_view>

namespace headrace::server {

/// 24 characters of random letters and digits, from the system's generator.
std::string random_name();
/// "req-" and a random name.
std::string make_request_id();

}  // namespace headrace::server
