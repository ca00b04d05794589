// Sizes of memory as users write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/result.h"

namespace headrace::cli {

/// Bytes of "1500000", "512M", "2GiB" (powers of 1024) or "1.5GB" (powers of 1000); at least 1.
/// Errors: invalid_argument.
Result<uint64_t> parse_bytes(std::string_view text);

}  // namespace headrace::cli
