// Untrusted text inside error messages: short, and in quotes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headrace::api {

/// At most `max_bytes` of it, cut at a character, with "..." where something is missing. What is
/// not UTF-8 becomes U+FFFD.
std::string shortened(std::string_view text, size_t max_bytes);

/// shortened() in double quotes.
std::string in_quotes(std::string_view text, size_t max_bytes = 60);

}  // namespace headrace::api
