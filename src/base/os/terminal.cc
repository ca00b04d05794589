// See terminal.h.
#include "base/os/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

struct KeyInput::Saved {
  struct termios mode {};
};

KeyInput::KeyInput() : saved_(std::make_unique<Saved>()) {
  if (::tcgetattr(STDIN_FILENO, &saved_->mode) != 0) {
    saved_.reset();
    return;
  }
  struct termios keys = saved_->mode;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VMIN] = 1;
  keys.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
}

KeyInput::~KeyInput() {
  if (saved_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_->mode);
}

ByteOutcome read_byte(int wake, unsigned char& byte) {
  std::array<struct pollfd, 2> waits{{{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}}};
  if (::poll(waits.data(), waits.size(), -1) < 0) {
    return errno == EINTR ? ByteOutcome::signal : ByteOutcome::end;
  }
  if (waits[1].revents != 0) return ByteOutcome::woken;
  const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
  if (count == 1) return ByteOutcome::byte;
  return count < 0 && (errno == EINTR || errno == EAGAIN) ? ByteOutcome::signal : ByteOutcome::end;
}

}  // namespace headrace
