// Counts of values by fixed buckets, as metrics want them. Part of the public C++ API.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace {

/// Nothing of it is ever allocated, and a copy is plain memory.
template <size_t N>
struct Histogram {
  std::array<double, N> bounds{};       ///< ascending; a bucket takes the values up to its bound
  std::array<int64_t, N + 1> counts{};  ///< by bucket; the last is of values past all bounds
  double sum = 0;                       ///< of all values

  /// In O(log N).
  void add(double value) {
    const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    ++counts[static_cast<size_t>(bucket)];
    sum += value;
  }

  int64_t num_values() const {
    int64_t all = 0;
    for (const int64_t count : counts) all += count;
    return all;
  }
};

}  // namespace headrace
