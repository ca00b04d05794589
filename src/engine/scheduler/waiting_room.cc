// See waiting_room.h.
#include "engine/scheduler/waiting_room.h"

#include <string>

namespace headrace {

Result<void> WaitingRoom::enter(int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  if (num_requests_ >= max_requests_) {
    return Error{ErrorCode::overloaded,
                 std::to_string(num_requests_) + " requests are waiting already, the most allowed",
                 "", "try again later"};
  }
  // A request that is alone is let in, however long it is.
  if (max_tokens_ > 0 && num_requests_ > 0 && num_tokens > max_tokens_ - num_tokens_) {
    return Error{ErrorCode::overloaded,
                 "requests with " + std::to_string(num_tokens_) + " tokens are waiting already; " +
                     std::to_string(max_tokens_) + " are allowed",
                 "", "try again later"};
  }
  ++num_requests_;
  num_tokens_ += num_tokens;
  return {};
}

void WaitingRoom::leave(int64_t num_tokens) noexcept {
  const std::lock_guard lock(mutex_);
  --num_requests_;
  num_tokens_ -= num_tokens;
}

int64_t WaitingRoom::num_requests() const {
  const std::lock_guard lock(mutex_);
  return num_requests_;
}

int64_t WaitingRoom::num_tokens() const {
  const std::lock_guard lock(mutex_);
  return num_tokens_;
}

}  // namespace headrace
