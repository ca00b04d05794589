// See signals.h.
#include "base/os/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace headrace {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupt_flag{false};
std::atomic<bool> terminate_flag{false};
std::atomic<bool> resize_flag{false};
std::atomic<bool> continue_flag{false};
std::atomic<bool> second_ends{false};
std::atomic<int> wake_write{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Of the main thread.
int wake_read = -1;
bool has_guard = false;

void set(std::atomic<bool>& flag) {
  const int saved = errno;
  flag.store(true);
  // A full pipe is readable as it is.
  [[maybe_unused]] const ssize_t written = ::write(wake_write.load(), "", 1);
  errno = saved;
}

extern "C" void on_interrupt(int signal) {
  if (signal == SIGINT && second_ends.load() && interrupt_flag.load()) {
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);  // once this handler has returned
  }
  set(interrupt_flag);
}
extern "C" void on_terminate(int) {
  terminate_flag.store(true);
  set(interrupt_flag);
}
extern "C" void on_resize(int) {
  set(resize_flag);
}
extern "C" void on_continue(int) {
  set(continue_flag);
}

/// The pipe lives as long as the process.
void open_wake_pipe() {
  if (wake_read >= 0) return;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  wake_read = ends[0];
  wake_write.store(ends[1]);
}

void drain_wake_pipe() {
  std::array<char, 64> bytes{};
  while (wake_read >= 0 && ::read(wake_read, bytes.data(), bytes.size()) > 0) {
  }
}

void handle(int signal, void (*handler)(int), struct sigaction* saved) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  // A write to a terminal goes on; whoever reads waits by `poll`, which no flag restarts.
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, saved);
}

}  // namespace

struct InterruptGuard::Saved {
  struct sigaction interrupt {};
  struct sigaction terminate {};
  struct sigaction hang_up {};
  bool catches_terminate = false;
};

InterruptGuard::InterruptGuard(const Options& options) : saved_(nullptr) {
  if (has_guard) return;
  has_guard = true;
  saved_ = new Saved;
  open_wake_pipe();
  clear();
  terminate_flag.store(false);
  second_ends.store(options.second_ends);
  saved_->catches_terminate = options.catch_terminate;
  handle(SIGINT, on_interrupt, &saved_->interrupt);
  if (options.catch_terminate) {
    handle(SIGTERM, on_terminate, &saved_->terminate);
    handle(SIGHUP, on_terminate, &saved_->hang_up);
  }
}

InterruptGuard::~InterruptGuard() {
  if (saved_ == nullptr) return;
  ::sigaction(SIGINT, &saved_->interrupt, nullptr);
  if (saved_->catches_terminate) {
    ::sigaction(SIGTERM, &saved_->terminate, nullptr);
    ::sigaction(SIGHUP, &saved_->hang_up, nullptr);
  }
  delete saved_;
  has_guard = false;
  clear();
}

bool InterruptGuard::interrupted() {
  return interrupt_flag.load();
}
bool InterruptGuard::terminated() {
  return terminate_flag.load();
}
void InterruptGuard::clear() {
  drain_wake_pipe();
  interrupt_flag.store(false);
}

struct TerminalSignals::Saved {
  struct sigaction resize {};
  struct sigaction go_on {};
};

TerminalSignals::TerminalSignals() : saved_(new Saved) {
  open_wake_pipe();
  resize_flag.store(false);
  continue_flag.store(false);
  handle(SIGWINCH, on_resize, &saved_->resize);
  handle(SIGCONT, on_continue, &saved_->go_on);
}

TerminalSignals::~TerminalSignals() {
  ::sigaction(SIGWINCH, &saved_->resize, nullptr);
  ::sigaction(SIGCONT, &saved_->go_on, nullptr);
  delete saved_;
}

TerminalSignals::Seen TerminalSignals::take() {
  // In this order: a signal that comes in between is seen, at the latest by the next call.
  drain_wake_pipe();
  return {resize_flag.exchange(false), continue_flag.exchange(false)};
}

int wake_descriptor() {
  return wake_read;
}

bool wait_for_input(int descriptor) {
  while (!InterruptGuard::interrupted()) {
    std::array<struct pollfd, 2> waits{{{descriptor, POLLIN, 0}, {wake_read, POLLIN, 0}}};
    const int ready = ::poll(waits.data(), waits.size(), -1);
    // What cannot be waited for can be read, if only to learn why.
    if (ready < 0 ? errno != EINTR : waits[0].revents != 0) return true;
    if (ready > 0 && !InterruptGuard::interrupted()) drain_wake_pipe();
  }
  return false;
}

void end_by_interrupt() {
  handle(SIGINT, SIG_DFL, nullptr);
  ::raise(SIGINT);
  std::_Exit(130);  // SIGINT is blocked
}

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace headrace
