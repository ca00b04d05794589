// The program's entry.
#include "base/os/input_stream.h"
#include "base/os/signals.h"
#include "cli/command.h"
#include "cli/frame.h"

int main(int argc, char** argv) {
  headrace::fill_standard_descriptors();
  // A full disk or a size limit is then an error of the write, with a message.
  headrace::ignore_file_size_signal();
  return headrace::cli::run_program({argv + (argc > 0 ? 1 : 0), argv + argc},
                                    headrace::cli::all_commands());
}
