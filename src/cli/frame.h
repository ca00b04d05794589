// The program around the commands: finds the command, parses, runs it, turns faults into exit
// codes.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace headrace::cli {

/// Runs the program with the arguments after its name; returns its exit code (0 done, 1 the work
/// failed, 2 wrong usage). No exception leaves it.
int run_program(const std::vector<std::string>& args, std::vector<Command> commands);

}  // namespace headrace::cli
