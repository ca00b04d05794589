// How many lines of one kind the log gets, so that a flood of refused requests does not become a
// flood of lines. Thread-safe. Must not know what is logged.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace headrace::server {

class LogRate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// At most `per_second` lines in each second.
  explicit LogRate(int per_second) : per_second_(per_second) {}

  /// Whether a line may be written now: how many were left out since the last one; nothing: leave
  /// this one out too.
  std::optional<int64_t> take(Time now) {
    const std::lock_guard lock(mutex_);
    if (now - began_ >= std::chrono::seconds(1)) {
      began_ = now;
      num_written_ = 0;
    }
    if (num_written_ >= per_second_) {
      ++num_left_out_;
      return std::nullopt;
    }
    ++num_written_;
    return std::exchange(num_left_out_, 0);
  }

 private:
  const int per_second_;
  std::mutex mutex_;
  Time began_{};
  int num_written_ = 0;
  int64_t num_left_out_ = 0;
};

}  // namespace headrace::server
