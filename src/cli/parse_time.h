// Times as users write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/result.h"

namespace headrace::cli {

/// Seconds since 1970 of "1767225600", "2026-01-01", "2026-01-01T12:30" or "2026-01-01T12:30:15",
/// all in UTC. Errors: invalid_argument.
Result<int64_t> parse_time(std::string_view text);

}  // namespace headrace::cli
