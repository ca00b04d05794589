// See inbox.h.
#include "engine/inbox.h"

#include <new>
#include <utility>

#include "engine/scheduler.h"

namespace headrace {

void Inbox::submit(std::unique_ptr<Sequence> sequence) {
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(sequence));
  }
  arrived_.notify_one();
}

void Inbox::cancel(uint64_t sequence_id) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return;
    cancelled_.push_back(sequence_id);
  }
  arrived_.notify_one();
}

void Inbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  arrived_.notify_one();
}

bool Inbox::drain(Scheduler& scheduler, bool wait) {
  std::vector<std::unique_ptr<Sequence>> submitted;
  std::vector<uint64_t> cancelled;
  bool is_stopped = false;
  {
    std::unique_lock lock(mutex_);
    const auto has_work = [&] {
      return !submitted_.empty() || !cancelled_.empty() || is_stopped_ || !scheduler.is_idle();
    };
    if (wait) arrived_.wait(lock, has_work);
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    is_stopped = is_stopped_;
  }
  for (auto& sequence : submitted) {
    try {
      scheduler.add(std::move(sequence));
    } catch (const std::bad_alloc&) {
      // Its destructor has told its reader. The others, and the cancels, must not be lost.
    }
  }
  for (const uint64_t id : cancelled) scheduler.cancel(id);
  return !is_stopped;
}

}  // namespace headrace
