// Whose step it is, where several engines share one pool of threads. Must not know engines.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace headrace {

/// A lock that is handed over in the order in which it was asked for: who has it and wants it again
/// comes after all who wait. So an engine waits for at most one step of each other one, whatever
/// they have to do, and one that is alone waits for nothing. Must outlive its turns; thread-safe.
class StepTurns {
 public:
  StepTurns() = default;
  StepTurns(const StepTurns&) = delete;
  StepTurns& operator=(const StepTurns&) = delete;

  /// Ends with its destructor, on any thread.
  class Turn {
   public:
    explicit Turn(StepTurns& turns) : turns_(&turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->pass_on();
    }

   private:
    StepTurns* turns_;
  };

  /// Waits until those who came before have had their turns.
  [[nodiscard]] Turn take();
  /// Who waits now.
  int64_t num_waiting() const;

 private:
  void pass_on() noexcept;

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  uint64_t next_ticket_ = 0;
  uint64_t now_served_ = 0;
};

}  // namespace headrace
