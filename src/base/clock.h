// Time as an interface, so that the engine can run on virtual time.
#pragma once

#include <chrono>
#include <cstdint>

namespace headrace {

/// A monotonic clock. Nanoseconds since an arbitrary start; `unix_seconds` is wall time.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;
  virtual int64_t unix_seconds() const = 0;
};

/// The machine's clock.
class SystemClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  int64_t unix_seconds() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace headrace
