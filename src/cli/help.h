// Help texts, made from the descriptions of the commands.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace headrace::cli {

/// `run [options] [PROMPT]`: what follows "headrace" in a usage line.
std::string usage_text(const Command& command);

/// The page of one command: description, options by group with defaults, examples.
std::string command_help(const Command& command, size_t width, bool colors);

/// The page of the program: the list of commands.
std::string overview_help(const std::vector<Command>& commands, size_t width, bool colors);

/// "an option's help (default: 40; one of: a, b)".
std::string option_help_text(const Option& option);

/// "-m, --model MODEL".
std::string option_title(const Option& option);

/// Headings in the order of their first option; the options of each.
struct OptionGroup {
  std::string heading;
  std::vector<const Option*> options;
};
std::vector<OptionGroup> option_groups(const Command& command);

}  // namespace headrace::cli
