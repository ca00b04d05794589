// Reads one file out of a wheel (a zip archive), in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "headrace/result.h"

namespace headrace {

/// Gives the bytes of `member` to `sink`, in order, until it returns an error. Errors: not_found
/// (no such member), corrupt_data (not a zip file, damaged), the sink's.
Result<void> read_wheel_member(const std::string& wheel, const std::string& member,
                               const std::function<Result<void>(std::span<const std::byte>)>& sink);

}  // namespace headrace
