// Arithmetic on sizes that come from files and requests: every operation says whether it
// overflowed.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace headrace {

/// a + b, or nothing if the sum does not fit T.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// a * b, or nothing if the product does not fit T.
template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// `value` as To, or nothing if it does not fit.
template <std::integral To, std::integral From>
constexpr std::optional<To> checked_cast(From value) {
  if (value < 0) {
    if constexpr (std::is_unsigned_v<To>) {
      return std::nullopt;
    } else if (static_cast<int64_t>(value) < static_cast<int64_t>(std::numeric_limits<To>::min())) {
      return std::nullopt;
    }
  } else if (static_cast<uint64_t>(value) > static_cast<uint64_t>(std::numeric_limits<To>::max())) {
    return std::nullopt;
  }
  return static_cast<To>(value);
}

/// Smallest multiple of `alignment` (a power of two) that is >= value, or nothing on overflow.
constexpr std::optional<uint64_t> checked_align_up(uint64_t value, uint64_t alignment) {
  const auto sum = checked_add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace headrace
