// Arithmetic on sizes that are only compared with a limit: what does not fit is the largest number.
#pragma once

#include <concepts>
#include <limits>

namespace headrace {

/// a + b, or the largest T.
template <std::unsigned_integral T>
constexpr T saturating_add(T a, T b) {
  T out;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<T>::max() : out;
}

/// a * b, or the largest T.
template <std::unsigned_integral T>
constexpr T saturating_mul(T a, T b) {
  T out;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<T>::max() : out;
}

}  // namespace headrace
