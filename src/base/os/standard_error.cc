// See standard_error.h.
#include "base/os/standard_error.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace headrace {

bool write_standard_error(std::string_view text) {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  if (pthread_sigmask(SIG_BLOCK, &pipe, nullptr) != 0) return false;
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace headrace
