// See terminal.h.
#include "base/os/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace headrace {
namespace {

int descriptor(StandardStream stream) {
  switch (stream) {
    case StandardStream::input:
      return STDIN_FILENO;
    case StandardStream::output:
      return STDOUT_FILENO;
    case StandardStream::error:
      return STDERR_FILENO;
  }
  return -1;
}

}  // namespace

bool is_terminal(StandardStream stream) {
  return ::isatty(descriptor(stream)) == 1;
}

int terminal_columns(StandardStream stream, int fallback) {
  struct winsize size {};
  if (::ioctl(descriptor(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return fallback;
  return size.ws_col;
}

}  // namespace headrace
