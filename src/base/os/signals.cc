// See signals.h.
#include "base/os/signals.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace headrace {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupt_flag{false};
std::atomic<int> wake_write{-1};
int wake_read = -1;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  const int saved = errno;
  interrupt_flag.store(true, std::memory_order_relaxed);
  // A full pipe is readable as it is.
  [[maybe_unused]] const ssize_t written = ::write(wake_write.load(), "", 1);
  errno = saved;
}

/// The pipe lives as long as the process.
void open_wake_pipe() {
  if (wake_read >= 0) return;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  wake_read = ends[0];
  wake_write.store(ends[1]);
}

}  // namespace

struct InterruptGuard::Saved {
  struct sigaction interrupt {};
  struct sigaction terminate {};
  bool catches_terminate = false;
};

InterruptGuard::InterruptGuard(bool catch_terminate) : saved_(new Saved) {
  open_wake_pipe();
  clear();
  saved_->catches_terminate = catch_terminate;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // blocked reads return, so that a prompt sees the flag
  ::sigaction(SIGINT, &action, &saved_->interrupt);
  if (catch_terminate) ::sigaction(SIGTERM, &action, &saved_->terminate);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &saved_->interrupt, nullptr);
  if (saved_->catches_terminate) ::sigaction(SIGTERM, &saved_->terminate, nullptr);
  delete saved_;
}

bool InterruptGuard::interrupted() {
  return interrupt_flag.load(std::memory_order_relaxed);
}
void InterruptGuard::clear() {
  interrupt_flag.store(false, std::memory_order_relaxed);
  std::array<char, 64> bytes{};
  while (wake_read >= 0 && ::read(wake_read, bytes.data(), bytes.size()) > 0) {
  }
}
int InterruptGuard::descriptor() {
  return wake_read;
}

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace headrace
