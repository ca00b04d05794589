// What one rendering may use: steps, bytes of one string, bytes alive at once, depth of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "text/chat_template/fault.h"

namespace headrace::jinja {

class Budget {
 public:
  Budget(int64_t max_steps, int64_t max_bytes, int32_t max_depth)
      : steps_left_(max_steps),
        max_bytes_(max_bytes),
        max_alive_(max_bytes > std::numeric_limits<int64_t>::max() / kAliveFactor
                       ? std::numeric_limits<int64_t>::max()
                       : max_bytes * kAliveFactor + kAliveSlack),
        max_depth_(max_depth) {}

  /// Takes `n` steps of work.
  void step(int64_t n = 1) {
    steps_left_ -= n;
    if (steps_left_ < 0) fail_limit("the template took too many steps (max_steps)");
  }
  /// Work in proportion to bytes touched; 128 bytes count as one step.
  void step_bytes(size_t n) { step(static_cast<int64_t>(n / 128)); }

  /// Fails if a string of so many bytes may not exist.
  void check_bytes(size_t n) const {
    if (n > static_cast<size_t>(max_bytes_)) {
      fail_limit("a string grew past " + std::to_string(max_bytes_) + " bytes (max_output_bytes)");
    }
  }
  /// n * count bytes, checked before anything is allocated.
  void check_product(size_t n, int64_t count) const {
    if (count > 0 && n > static_cast<size_t>(max_bytes_) / static_cast<size_t>(count)) {
      check_bytes(static_cast<size_t>(max_bytes_) + 1);
    }
  }
  void take(size_t bytes) {
    alive_ += static_cast<int64_t>(bytes);
    if (alive_ > max_alive_) {
      alive_ -= static_cast<int64_t>(bytes);
      fail_limit("the template's values need more than " + std::to_string(max_alive_) + " bytes");
    }
  }
  void give_back(size_t bytes) noexcept { alive_ -= static_cast<int64_t>(bytes); }

  int32_t max_depth() const { return max_depth_; }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  static constexpr int64_t kAliveFactor = 4;
  static constexpr int64_t kAliveSlack = 16 << 20;
  int64_t steps_left_;
  int64_t max_bytes_;
  int64_t max_alive_;
  int64_t alive_ = 0;
  int32_t max_depth_;
};

/// Bytes held against a budget for as long as this lives. Without a budget it does nothing.
class Hold {
 public:
  Hold() = default;
  Hold(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {
    if (budget_ != nullptr) budget_->take(bytes_);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (budget_ != nullptr) budget_->give_back(bytes_);
  }

 private:
  Budget* budget_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace headrace::jinja
