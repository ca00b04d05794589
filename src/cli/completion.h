// Shell completion, made from the descriptions of the commands.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace headrace::cli {

/// The script for "bash", "zsh" or "fish".
std::string completion_script(const std::string& shell, const std::vector<Command>& commands);

}  // namespace headrace::cli
