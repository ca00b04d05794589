// How long a thread spins before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

namespace headrace {

/// Tells the processor that a loop only waits.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The budget of one waiting thread. On a machine of its own it is longer than the gap between two
/// parallel regions of a step and shorter than what an idle process should burn. Where the thread
/// is taken off its processor while it spins, others want that processor (perhaps the very thread
/// that is waited for), and the budget shrinks; spins that end well let it grow again.
class SpinBudget {
 public:
  using Clock = std::chrono::steady_clock;

  // About 30 to 80 microseconds on current machines.
  static constexpr int kMost = 2000;
  static constexpr int kLeast = 32;

  /// Spins until ready() or to the end of the budget; the last ready().
  template <class Ready>
  bool spin(Ready ready) {
    // A look at the clock every few microseconds.
    constexpr int kLook = 64;
    Clock::time_point last = Clock::now();
    for (int i = 1; i <= iterations_; ++i) {
      if (ready()) {
        iterations_ = std::min(kMost, iterations_ + iterations_ / 16 + 1);
        return true;
      }
      pause_cpu();
      if (i % kLook != 0) continue;
      const Clock::time_point now = Clock::now();
      if (was_taken_off(now - last)) return ready();
      last = now;
    }
    return ready();
  }

  int iterations() const { return iterations_; }

  /// Takes note of how long a few microseconds of spinning took; whether that was so long that the
  /// thread must have been off its processor.
  bool was_taken_off(Clock::duration time) {
    if (time < std::chrono::microseconds(200)) return false;
    iterations_ = std::max(kLeast, iterations_ / 4);
    return true;
  }

 private:
  int iterations_ = kMost;
};

}  // namespace headrace
