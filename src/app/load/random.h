// Draws of a workload: each depends on the seed, what it is for and which request it belongs to,
// and on nothing that was drawn before.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/random.h"

namespace headrace {

enum class LoadPurpose : uint8_t { arrival, input_length, output_length, prefix, tokens, sampling };

class LoadRandom {
 public:
  LoadRandom(uint64_t seed, LoadPurpose purpose, uint64_t index)
      : seed_(seed), purpose_(static_cast<uint64_t>(purpose)), index_(index) {}

  uint64_t next() { return counter_random(seed_, purpose_, index_, draw_++); }

  /// In [0, 1).
  double unit() { return to_unit_interval(next()); }

  /// In [0, count); `count` is far below 2^64, so that no value is preferred by much.
  uint64_t below(uint64_t count) { return next() % count; }

  /// Of mean 1.
  double exponential() { return -std::log1p(-unit()); }

  /// Of mean 0 and standard deviation 1 (Box and Muller 1958).
  double gauss() {
    const double radius = std::sqrt(2 * exponential());
    return radius * std::cos(2 * std::numbers::pi * unit());
  }

 private:
  uint64_t seed_;
  uint64_t purpose_;
  uint64_t index_;
  uint64_t draw_ = 0;
};

}  // namespace headrace
