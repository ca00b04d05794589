// Numbers for kernels, made of a fuzzer's bytes: shapes, blocks of weights, rows of activations.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "backend/cpu/test_tensors.h"

namespace headrace::fuzzing {

/// Reads bytes from the front; past the end come made-up ones, so that short inputs give whole
/// problems.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : rest_(data, size), made_up_(size + 1) {}

  uint8_t byte() {
    if (rest_.empty()) return static_cast<uint8_t>(made_up_.bits());
    const uint8_t first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }
  int64_t below(int64_t n) { return byte() % n; }
  uint32_t four() {
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | byte();
    return bits;
  }
  /// Any bits: NaN, infinities and denormal numbers too.
  float any_float() {
    const uint32_t bits = four();
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  /// In [-1, 1), in steps of 1 / 128.
  float small() { return static_cast<float>(static_cast<int8_t>(byte())) / 128.0F; }

 private:
  std::span<const uint8_t> rest_;
  backend_test::Numbers made_up_;
};

/// A row of one kind; kinds are the sizes and oddities that activations could have.
inline void fill_row(Bytes& bytes, std::span<float> row) {
  constexpr float kSizes[] = {1.0F, 1e-3F, 1e4F, 1e9F, 1e15F, 9e29F, 1e33F, 2e-20F, 5e-21F, 1e-39F};
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const int64_t kind = bytes.below(16);
  for (float& x : row) {
    if (kind == 15) {
      x = bytes.any_float();
    } else if (kind == 14) {
      x = 0.7F;  // all of one size: the largest sums
    } else {
      x = bytes.small() * kSizes[kind % 10];
    }
  }
  // Blocks that are far larger than the others, or zeros.
  if (kind >= 10) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i / 32 % 3 == 1) row[i] *= kind % 2 == 0 ? 50.0F : 0.0F;
    }
  }
  const auto at = static_cast<size_t>(bytes.byte()) * 7 % row.size();
  switch (bytes.below(24)) {
    case 0:
      row[at] = std::numeric_limits<float>::quiet_NaN();
      break;
    case 1:
      row[at] = kInf;
      break;
    case 2:
      row[at] = -kInf;
      break;
    case 3:
      row[at] = -1e30F;
      break;
    default:
      break;
  }
}

/// Equal in every bit, or both no numbers.
inline bool same_number(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(a)) == 0;
}

/// Beyond this a sum of floats may or may not be infinite on the way.
constexpr double kNearOverflow = 1e37;

}  // namespace headrace::fuzzing
