// The queue between the engine and the reader of one request's events. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "headrace/engine.h"

namespace headrace {

class Inbox;

class Stream::Impl {
 public:
  Impl(std::shared_ptr<Inbox> inbox, uint64_t sequence_id);

  /// From the engine's thread. A FinishEvent or an ErrorEvent is the last.
  void push(Event event);
  /// Waits for the next event; nothing once the last one was read.
  std::optional<Event> next();
  /// Asks the engine to cancel unless the end has been pushed already.
  void cancel();

 private:
  const std::shared_ptr<Inbox> inbox_;
  const uint64_t sequence_id_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  bool has_ended_ = false;  // the last event was pushed
};

}  // namespace headrace
