// The list of commands, in the order of the help text.
#include "cli/commands.h"

namespace headrace::cli {

std::vector<Command> all_commands() {
  return {
      pull_command(), list_command(), show_command(),       rm_command(),
      help_command(), man_command(),  completion_command(),
  };
}

}  // namespace headrace::cli
