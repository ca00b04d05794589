// See signals.h.
#include "base/os/signals.h"

#include <signal.h>

#include <atomic>

namespace headrace {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  interrupt_flag.store(true, std::memory_order_relaxed);
}

}  // namespace

struct InterruptGuard::Saved {
  struct sigaction interrupt {};
  struct sigaction terminate {};
  bool catches_terminate = false;
};

InterruptGuard::InterruptGuard(bool catch_terminate) : saved_(new Saved) {
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
}

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace headrace
