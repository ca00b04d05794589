// When the step under way last got on, for whoever watches from outside. Thread-safe, without a
// lock. Must not know what a step is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "base/clock.h"

namespace headrace {

class Heartbeat {
 public:
  /// The step begins, or has got on.
  void beat(int64_t now_ns) noexcept { last_ns_.store(now_ns, std::memory_order_relaxed); }
  /// No step is under way.
  void rest() noexcept { last_ns_.store(kNoStep, std::memory_order_relaxed); }
  /// Nanoseconds since the last beat; 0 where no step is under way.
  int64_t silent_ns(int64_t now_ns) const noexcept {
    const int64_t last_ns = last_ns_.load(std::memory_order_relaxed);
    return last_ns == kNoStep ? 0 : std::max<int64_t>(0, now_ns - last_ns);
  }

 private:
  static constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();
  std::atomic<int64_t> last_ns_ = kNoStep;
};

/// A step, from its begin to its end, however it ends.
class StepWatch {
 public:
  StepWatch(Heartbeat& heartbeat, const Clock& clock) noexcept : heartbeat_(heartbeat) {
    heartbeat_.beat(clock.now_ns());
  }
  ~StepWatch() { heartbeat_.rest(); }
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

 private:
  Heartbeat& heartbeat_;
};

}  // namespace headrace
