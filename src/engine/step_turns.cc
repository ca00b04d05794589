// See step_turns.h.
#include "engine/step_turns.h"

namespace headrace {

StepTurns::Turn StepTurns::take() {
  std::unique_lock lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  moved_.wait(lock, [&] { return now_served_ == ticket; });
  return Turn(*this);
}

int64_t StepTurns::num_waiting() const {
  const std::lock_guard lock(mutex_);
  const uint64_t num_taken = next_ticket_ - now_served_;  // the one that runs too
  return num_taken > 0 ? static_cast<int64_t>(num_taken) - 1 : 0;
}

// All are woken, as the next is one of them: there are as many as a process has models.
void StepTurns::pass_on() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++now_served_;
  }
  moved_.notify_all();
}

}  // namespace headrace
