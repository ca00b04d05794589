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

  /// From the engine's thread. A FinishEvent or an ErrorEvent is the last; what comes after it is
  /// dropped. Where this throws (memory), nothing was pushed.
  void push(Event event);
  /// Ends the stream with an error for want of memory, and needs none itself. Nothing if it has
  /// ended.
  void break_off() noexcept;
  /// Whether break_off() ended it.
  bool has_broken_off() const noexcept;
  /// Waits for the next event; nothing once the last one was read.
  std::optional<Event> next();
  bool wait_for(std::chrono::milliseconds time);
  /// Asks the engine to cancel unless the end has been pushed already.
  void cancel();

 private:
  const std::shared_ptr<Inbox> inbox_;
  const uint64_t sequence_id_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  bool has_ended_ = false;       // the last event was pushed, or the stream broke off
  bool has_broken_off_ = false;  // ended without a last event to read
  bool owes_error_ = false;      // the reader has not seen the error for it yet
};

}  // namespace headrace
