// See inbox.h.
#include "engine/inbox.h"

#include <chrono>
#include <new>
#include <utility>

#include "engine/scheduler/scheduler.h"

namespace headrace {

void Inbox::submit(std::vector<std::unique_ptr<Sequence>> choices) {
  {
    const std::lock_guard lock(mutex_);
    submitted_.push_back(std::move(choices));
  }
  arrived_.notify_one();
}

Inbox::~Inbox() {
  drop(cancelled_);
}

void Inbox::cancel(std::shared_ptr<Stream::Impl> stream, int32_t choice) noexcept {
  if (choice >= kMaxChoices) return;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return;
    Stream::Impl::Cancels& cancels = stream->cancels;
    if (choice < 0) {
      cancels.choices.set();
    } else {
      cancels.choices[static_cast<size_t>(choice)] = true;
    }
    if (!std::exchange(cancels.are_listed, true)) {
      cancels.next = std::exchange(cancelled_, stream);
    }
  }
  arrived_.notify_one();
}

// Takes the first off a list, with what is to be cancelled of it; nothing where the list is empty.
std::shared_ptr<Stream::Impl> Inbox::take(std::shared_ptr<Stream::Impl>& list,
                                          std::bitset<kMaxChoices>& choices) noexcept {
  const std::lock_guard lock(mutex_);
  auto stream = std::move(list);
  if (stream == nullptr) return stream;
  list = std::exchange(stream->cancels.next, nullptr);
  choices = std::exchange(stream->cancels.choices, {});
  stream->cancels.are_listed = false;
  return stream;
}

// One by one: a list that is left to its destructor is destroyed recursively.
void Inbox::drop(std::shared_ptr<Stream::Impl>& list) noexcept {
  std::bitset<kMaxChoices> ignored;
  while (take(list, ignored) != nullptr) {
  }
}

void Inbox::cancel_all_of(std::shared_ptr<Stream::Impl> list, Scheduler& scheduler) {
  try {
    std::bitset<kMaxChoices> choices;
    while (const auto stream = take(list, choices)) scheduler.cancel(*stream, choices);
  } catch (...) {
    drop(list);
    throw;
  }
}

void Inbox::forget_prefixes() {
  {
    const std::lock_guard lock(mutex_);
    forgets_prefixes_ = true;
  }
  arrived_.notify_one();
}

void Inbox::post(std::packaged_task<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return;
    tasks_.push_back(std::move(task));
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

void Inbox::wait(std::unique_lock<std::mutex>& lock, int64_t until_ns, const Clock& clock) {
  const auto has_mail = [&] {
    return !submitted_.empty() || cancelled_ != nullptr || !tasks_.empty() || forgets_prefixes_ ||
           is_stopped_;
  };
  if (until_ns == kNever) {
    arrived_.wait(lock, has_mail);
  } else if (const int64_t left_ns = until_ns - clock.now_ns(); left_ns > 0) {
    arrived_.wait_for(lock, std::chrono::nanoseconds(left_ns), has_mail);
  }
}

bool Inbox::drain(Scheduler& scheduler, const Clock& clock, bool wait_for_mail) {
  decltype(submitted_) submitted;
  std::shared_ptr<Stream::Impl> cancelled;  // all of them submitted before now
  decltype(tasks_) tasks;
  bool forgets_prefixes = false;
  bool is_stopped = false;
  {
    std::unique_lock lock(mutex_);
    if (wait_for_mail) wait(lock, scheduler.wake_ns(), clock);
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    tasks.swap(tasks_);
    forgets_prefixes = std::exchange(forgets_prefixes_, false);
    is_stopped = is_stopped_;
  }
  for (auto& choices : submitted) {
    try {
      scheduler.add(std::move(choices));
    } catch (const std::bad_alloc&) {
      // Its destructor has told its reader. The others, and the cancels, must not be lost.
    }
  }
  cancel_all_of(std::move(cancelled), scheduler);
  if (forgets_prefixes) scheduler.forget_prefixes();
  if (is_stopped) return false;
  for (auto& task : tasks) task();
  return true;
}

}  // namespace headrace
