// Dates for templates, in UTC and the C locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::jinja {

/// strftime(3) as Python's datetime offers it, for years 1 to 9999 (others are clamped). A code
/// that is not known stays as it is written.
std::string format_time(int64_t unix_seconds, std::string_view format);

}  // namespace headrace::jinja
