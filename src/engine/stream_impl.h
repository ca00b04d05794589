// The queue between the engine and the reader of one request's events. Thread-safe, but for
// `choices`.
#pragma once

#include <atomic>
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/engine.h"

namespace headrace {

class Inbox;
struct Sequence;

class Stream::Impl : public std::enable_shared_from_this<Stream::Impl> {
 public:
  Impl(std::shared_ptr<Inbox> inbox, uint64_t request_id, int32_t num_choices);

  uint64_t request_id() const { return request_id_; }

  /// From the engine's thread. An ErrorEvent or the FinishEvent of the last choice is the last;
  /// what comes after it is dropped. Where this throws (memory), nothing was pushed.
  void push(Event event);
  /// Ends the stream with an error for want of memory, and needs none itself. Nothing if it has
  /// ended.
  void break_off() noexcept;
  /// Whether break_off() ended it.
  bool has_broken_off() const noexcept;

  /// Waits for the next event; nothing once the last one was read.
  std::optional<Event> next();
  bool wait_for(std::chrono::milliseconds time);
  /// Asks the engine to cancel a choice, or with -1 all, unless the end has been pushed already.
  /// Needs no memory: a stream is dropped where there may be none.
  void cancel(int32_t choice) noexcept;
  /// Whether all of it was to be cancelled. From any thread, without a lock.
  bool is_unwanted() const noexcept { return is_unwanted_.load(std::memory_order_relaxed); }

  /// The request's sequences that have not ended. The engine's thread alone may touch them.
  std::vector<Sequence*> choices;

  /// What is to be cancelled, and this stream's place in the inbox's list of those that have
  /// something to be. The inbox's lock guards it.
  struct Cancels {
    std::bitset<kMaxChoices> choices;
    std::shared_ptr<Impl> next;
    bool are_listed = false;
  };
  Cancels cancels;

 private:
  std::atomic<bool> is_unwanted_ = false;
  const std::shared_ptr<Inbox> inbox_;
  const uint64_t request_id_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;
  int32_t num_open_;             // choices that have not finished
  bool has_ended_ = false;       // the last event was pushed, or the stream broke off
  bool has_broken_off_ = false;  // ended without a last event to read
  bool owes_error_ = false;      // the reader has not seen the error for it yet
};

}  // namespace headrace
