// How much may wait for the engine. Counts requests and their prompts' tokens, from the moment that
// they are submitted until they begin or end. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>

#include "headrace/result.h"

namespace headrace {

class WaitingRoom {
 public:
  /// `max_tokens` 0: no bound.
  WaitingRoom(int64_t max_requests, int64_t max_tokens)
      : max_requests_(max_requests), max_tokens_(max_tokens) {}

  /// One more request with that many tokens. Error: overloaded, and it has no place.
  Result<void> enter(int64_t num_tokens);
  void leave(int64_t num_tokens) noexcept;

  int64_t num_requests() const;
  int64_t num_tokens() const;

 private:
  const int64_t max_requests_;
  const int64_t max_tokens_;
  mutable std::mutex mutex_;
  int64_t num_requests_ = 0;
  int64_t num_tokens_ = 0;
};

}  // namespace headrace
