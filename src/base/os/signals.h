// Signals as values: Ctrl-C as a flag that long work looks at.
#pragma once

namespace headrace {

/// While one is alive, SIGINT (and SIGTERM, if asked for) sets a flag instead of ending the
/// process. Not nested; made and destroyed by the main thread. The flag may be read by any thread.
class InterruptGuard {
 public:
  explicit InterruptGuard(bool catch_terminate = false);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal came since construction or the last `clear`.
  static bool interrupted();
  static void clear();
  /// A descriptor that is readable once a signal came, until `clear`: what waits on it together
  /// with its input misses no signal, also one that comes just before the wait. -1 where the system
  /// has no descriptor left.
  static int descriptor();

 private:
  struct Saved;
  Saved* saved_;
};

/// A write past the file size limit fails with an error instead of ending the process.
void ignore_file_size_signal();

}  // namespace headrace
