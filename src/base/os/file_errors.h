// What is said where a file cannot be opened or written.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace {

/// Of open(2): not_found, or io_error with what `error_number`, an errno, means.
Error open_error(const std::string& path, int error_number);

/// Of calls that write: resource_exhausted where there is no more room, else io_error. `name` is a
/// path, or what the user calls the output.
Error write_error(const std::string& name, int error_number);

}  // namespace headrace
