// Where the sums of a product come from and go to, for kernels over panels of 16 outputs.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

HEADRACE_INLINE int64_t panels_of(int64_t num_outputs) {
  return (num_outputs + kPanelRows - 1) / kPanelRows;
}

/// Some consecutive outputs of some rows.
struct Outputs {
  float* out = nullptr;  ///< of the first row, rows `stride` apart
  int64_t stride = 0;
  int64_t num_lanes = 0;        ///< that exist; may be more than a kernel has sums
  const float* bias = nullptr;  ///< [num_lanes] or null
};

/// What sums of `num_rows` rows begin with, [num_rows][kVectors]: zeros, or what stands in `out` of
/// the columns before.
template <int kVectors>
HEADRACE_INLINE void begin_sums(const Outputs& o, int64_t num_rows, bool is_first, vf* sums) {
  for (int64_t r = 0; r < num_rows; ++r) {
    vf* row = sums + r * kVectors;
    if (is_first) {
      for (int v = 0; v < kVectors; ++v) row[v] = vf{};
    } else {
      load_lanes(o.out + r * o.stride, o.num_lanes, kVectors, row);
    }
  }
}

/// Stores them; with the bias, if there is one, where no columns follow.
template <int kVectors>
HEADRACE_INLINE void store_sums(const Outputs& o, int64_t num_rows, bool is_last, vf* sums) {
  const bool with_bias = is_last && o.bias != nullptr;
  vf bias[kVectors];
  if (with_bias) load_lanes(o.bias, o.num_lanes, kVectors, bias);
  for (int64_t r = 0; r < num_rows; ++r) {
    vf* row = sums + r * kVectors;
    if (with_bias) {
      for (int v = 0; v < kVectors; ++v) row[v] += bias[v];
    }
    store_lanes(row, o.num_lanes, kVectors, o.out + r * o.stride);
  }
}

template <int kNumber>
struct Rows {
  static constexpr int kCount = kNumber;
};

/// Calls f(Rows<n>) with the largest n of kMost, 4, 2 and 1 that is at most kMost and `left`, which
/// is at least 1. Returns it.
template <int kMost, class F>
HEADRACE_INLINE int64_t take_rows(int64_t left, const F& f) {
  static_assert(kMost == 2 || kMost == 4 || kMost == 6 || kMost == 8);
  if constexpr (kMost > 4) {
    if (left >= kMost) return f(Rows<kMost>{}), kMost;
  }
  if constexpr (kMost >= 4) {
    if (left >= 4) return f(Rows<4>{}), 4;
  }
  if (left >= 2) return f(Rows<2>{}), 2;
  return f(Rows<1>{}), 1;
}

}  // namespace
}  // namespace headrace
