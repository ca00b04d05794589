// The only way into the engine: what callers ask for between two steps. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/sequence.h"

namespace headrace {

class Scheduler;

class Inbox {
 public:
  void submit(std::unique_ptr<Sequence> sequence);
  void cancel(uint64_t sequence_id);
  /// Wakes the engine for the last time.
  void stop();

  /// Hands everything over; a request that there is no memory for is broken off. With `wait`,
  /// blocks while the scheduler has no work and nothing comes. Returns false once stopped.
  bool drain(Scheduler& scheduler, bool wait);

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::unique_ptr<Sequence>> submitted_;
  std::vector<uint64_t> cancelled_;
  bool is_stopped_ = false;
};

}  // namespace headrace
