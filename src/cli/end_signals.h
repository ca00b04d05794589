// The signals that end a server: the first asks, the second ends the process, whatever it does.
#pragma once

#include <atomic>
#include <thread>

#include "base/os/signals.h"

namespace headrace::cli {

/// While one is alive, SIGINT, SIGTERM and SIGHUP are caught. Made by the main thread.
class EndSignals {
 public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  /// Whether one came.
  bool came() const { return num_came_ > 0; }

 private:
  void watch();

  InterruptGuard guard_;
  std::atomic<int> num_came_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace headrace::cli
