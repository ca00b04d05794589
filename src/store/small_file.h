// Small text files of the store and the cache.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// The file's text; nothing where it is absent, cannot be read or is longer than `max_bytes`.
std::optional<std::string> read_text_up_to(const std::string& path, size_t max_bytes);

/// Writes a whole file that appears under its name at once. Errors: io_error, resource_exhausted.
Result<void> write_small_file(const std::string& path, std::string_view text);

}  // namespace headrace
