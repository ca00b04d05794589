// The manual page, made from the descriptions of the commands.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace headrace::cli {

/// headrace(1) in mdoc(7).
std::string man_page(const std::vector<Command>& commands);

}  // namespace headrace::cli
