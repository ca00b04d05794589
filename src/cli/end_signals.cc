// See end_signals.h.
#include "cli/end_signals.h"

#include <chrono>
#include <cstdlib>

#include "cli/command.h"

namespace headrace::cli {
namespace {

constexpr std::chrono::milliseconds kLookAgain{20};

}  // namespace

EndSignals::EndSignals() : guard_({.catch_terminate = true}), thread_([this] { watch(); }) {}

EndSignals::~EndSignals() {
  is_over_ = true;
  thread_.join();
}

void EndSignals::watch() {
  while (!is_over_) {
    std::this_thread::sleep_for(kLookAgain);
    if (!InterruptGuard::interrupted()) continue;
    InterruptGuard::clear();
    // Without a goodbye: what keeps the process may be anything.
    if (++num_came_ > 1) std::_Exit(kFailed);
  }
}

}  // namespace headrace::cli
