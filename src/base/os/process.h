// Runs another program: no shell, output captured up to a limit, a time limit, a callback while it
// runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/result.h"

namespace headrace {

struct ProcessOptions {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH
  /// Variables set (or replaced) in the child's environment; the rest is inherited.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> unset;        ///< variables taken out of it
  std::string working_directory;         ///< empty: ours
  std::string input;                     ///< bytes for its standard input; then end of file
  std::chrono::milliseconds timeout{0};  ///< 0: none
  size_t max_output_bytes = 1 << 20;     ///< kept per stream; more is read and dropped
  /// Called about ten times a second; returning false ends the program.
  std::function<bool()> on_tick;
};

struct ProcessResult {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  bool timed_out = false;
  bool stopped = false;  ///< on_tick said so
  std::string out;
  std::string err;

  bool succeeded() const { return exit_code == 0 && !timed_out && !stopped; }
};

/// Runs the program to its end. It gets a process group of its own, which is killed as a whole on a
/// timeout or a stop, and it dies with us. Errors: not_found (no such program), io_error.
Result<ProcessResult> run_process(const ProcessOptions& options);

}  // namespace headrace
