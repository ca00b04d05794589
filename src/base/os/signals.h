// Signals as values: Ctrl-C as a flag that long work looks at.
#pragma once

namespace headrace {

/// While one is alive, SIGINT (and SIGTERM and SIGHUP, if asked for) sets a flag instead of ending
/// the process. Made and destroyed by the main thread. One inside the life of another changes
/// nothing, and leaves the flag as it is. The flag may be read by any thread.
class InterruptGuard {
 public:
  struct Options {
    bool catch_terminate = false;
    /// A SIGINT while the flag is set ends the process: it may be in a write that nobody reads.
    bool second_ends = false;
  };
  InterruptGuard() : InterruptGuard(Options()) {}
  explicit InterruptGuard(const Options& options);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// Whether a signal came since construction or the last `clear`.
  static bool interrupted();
  static void clear();
  /// Whether one of them was a SIGTERM or SIGHUP that the outermost guard caught; `clear` does not
  /// take that back.
  static bool terminated();

 private:
  struct Saved;
  Saved* saved_;  ///< null in one inside another
};

/// What a line editor must know of its terminal, while one is alive.
class TerminalSignals {
 public:
  TerminalSignals();
  ~TerminalSignals();
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;

  struct Seen {
    bool resized = false;    ///< SIGWINCH: the window has another size
    bool continued = false;  ///< SIGCONT: stopped and continued; a shell may have set the terminal
  };
  /// What came since the last call. Takes back what made `wake_descriptor` readable.
  static Seen take();

 private:
  struct Saved;
  Saved* saved_;
};

/// A descriptor that is readable once a signal of the above came, until `InterruptGuard::clear` or
/// `TerminalSignals::take`: what waits on it together with its input misses no signal, also one
/// that comes just before the wait. -1 where the system has no descriptor left, or no guard was
/// made yet.
int wake_descriptor();

/// Waits until `descriptor` can be read, or is at its end; false where a Ctrl-C came first, or
/// before and was not cleared.
bool wait_for_input(int descriptor);

/// Ends the process as Ctrl-C does where nothing catches it, so that a shell's loop ends too.
[[noreturn]] void end_by_interrupt();

/// A write past the file size limit fails with an error instead of ending the process.
void ignore_file_size_signal();

}  // namespace headrace
