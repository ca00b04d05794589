// The only way into the engine: what callers ask for between two steps. Thread-safe.
#pragma once

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "engine/scheduler/sequence.h"

namespace headrace {

class Scheduler;

class Inbox {
 public:
  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox();

  /// The choices of one request. Throws std::bad_alloc.
  void submit(std::vector<std::unique_ptr<Sequence>> choices);
  /// A choice of a request, or with -1 all.
  void cancel(std::shared_ptr<Stream::Impl> stream, int32_t choice) noexcept;
  void forget_prefixes();
  /// Something to be done on the engine's thread between two steps. Where the engine has stopped,
  /// or does before it comes to it, the task is dropped, and its future told so
  /// (std::future_error). Throws std::bad_alloc.
  void post(std::packaged_task<void()> task);
  /// Wakes the engine for the last time.
  void stop();

  /// Hands everything over, then runs the tasks; a request that there is no memory for is broken
  /// off. With `wait`, blocks until something comes or it is Scheduler::wake_ns(). Returns false
  /// once stopped.
  bool drain(Scheduler& scheduler, const Clock& clock, bool wait);

 private:
  void wait(std::unique_lock<std::mutex>& lock, int64_t until_ns, const Clock& clock);
  std::shared_ptr<Stream::Impl> take(std::shared_ptr<Stream::Impl>& list,
                                     std::bitset<kMaxChoices>& choices) noexcept;
  void drop(std::shared_ptr<Stream::Impl>& list) noexcept;
  void cancel_all_of(std::shared_ptr<Stream::Impl> list, Scheduler& scheduler);

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::vector<std::unique_ptr<Sequence>>> submitted_;
  std::shared_ptr<Stream::Impl> cancelled_;  // the first of a list: the newest
  std::vector<std::packaged_task<void()>> tasks_;
  bool forgets_prefixes_ = false;
  bool is_stopped_ = false;
};

}  // namespace headrace
