// From a command's description and a user's arguments to stored values. The only place that knows
// CLI11 is parser.cc.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

struct Parsed {
  bool help = false;                  ///< -h or --help was given: nothing was stored
  std::vector<std::string> warnings;  ///< flags without effect
};

/// Parses `args` (without the program's and the command's name) into the targets of the command's
/// options. Errors (invalid_argument): an unknown option (the hint names the nearest), a missing or
/// bad value, a missing required option, too many arguments; `where` is the option, as it was
/// typed.
Result<Parsed> parse_args(const Command& command, const std::vector<std::string>& args);

}  // namespace headrace::cli
