// Activations to integers in one or two planes, see QuantizedRows.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

HEADRACE_INLINE int32_t sum_of_lanes(I16x a) {
  int32_t x[16];
  std::memcpy(x, &a, sizeof(x));
  for (int n = 8; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) x[i] += x[i + n];
  }
  return x[0];
}

HEADRACE_INLINE void store_bytes(I16x a, int8_t* out) {
  HEADRACE_EACH {
    const vbyte bytes = __builtin_convertvector(a.p[i], vbyte);
    std::memcpy(out + i * HEADRACE_LANES, &bytes, sizeof(bytes));
  }
}

/// Rounds to integers (ties to even), writes them to the planes and returns their sum.
template <int kPlanes>
HEADRACE_INLINE int32_t quantize_lanes(F16x x, float inverse, int8_t* high, int8_t* low) {
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const F16x shifted = x * splat(inverse) + splat(12582912.0F);
  I16x integers;
  I16x highs;
  I16x lows = {};
  HEADRACE_EACH {
    integers.p[i] = (vi)shifted.p[i] - 0x4b400000;
    highs.p[i] = kPlanes == 2 ? (integers.p[i] + 64) >> 7 : integers.p[i];
    if constexpr (kPlanes == 2) lows.p[i] = integers.p[i] - highs.p[i] * 128;
  }
  store_bytes(highs, high);
  if constexpr (kPlanes == 2) store_bytes(lows, low);
  return sum_of_lanes(integers);
}

template <int kPlanes>
HEADRACE_INLINE void quantize_row(const float* values, int64_t row, const QuantizedRows& x) {
  // The largest integer. In two planes: 127 in the high one, 0 in the low one.
  constexpr float kLargest = kPlanes == 2 ? 127.0F * 128.0F : 127.0F;
  const int64_t num_blocks = x.cols / kBlockCols;
  const int64_t tile = row / kTileRows * kTileRows;
  const int64_t height = x.num_rows - tile < kTileRows ? x.num_rows - tile : kTileRows;
  for (int64_t block = 0; block < num_blocks; ++block) {
    const int64_t at = tile * num_blocks + block * height + (row - tile);
    F16x a = load(values + block * kBlockCols);
    F16x b = load(values + block * kBlockCols + 16);
    F16x magnitude;
    HEADRACE_EACH {
      const vf positive_a = (vf)((vi)a.p[i] & INT32_MAX);
      const vf positive_b = (vf)((vi)b.p[i] & INT32_MAX);
      magnitude.p[i] = positive_a > positive_b ? positive_a : positive_b;
    }
    const float largest = reduce_max(magnitude);
    const float poison = reduce_add((a + b) * splat(0.0F));  // NaN if a number is not finite
    // Its integers are then zeros, so that their sums stay in range; its scale says NaN.
    const bool poisoned = !(poison == 0.0F);
    if (poisoned) a = b = splat(0.0F);
    // Below this the inverse would overflow; such a block is as good as zero.
    const bool tiny = !(largest > 1e-30F);
    const float scale = tiny ? 0.0F : largest / kLargest;
    const float inverse = tiny || poisoned ? 0.0F : kLargest / largest;
    int8_t* high = x.high + at * kBlockCols;
    int8_t* low = kPlanes == 2 ? x.low + at * kBlockCols : nullptr;
    const int32_t first = quantize_lanes<kPlanes>(a, inverse, high, low);
    const int32_t second =
        quantize_lanes<kPlanes>(b, inverse, high + 16, kPlanes == 2 ? low + 16 : nullptr);
    int32_t* negated_sums = x.negated_sums + 3 * (at - (row - tile)) + (row - tile);
    negated_sums[0] = -(first + second);
    negated_sums[height] = -first;
    negated_sums[2 * height] = -second;
    x.scale[at] = scale + poison;
    x.scaled_sum[at] = x.scale[at] * static_cast<float>(first + second);
  }
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void quantize_row_int8(const float* values, int64_t row, const QuantizedRows& x) {
  quantize_row<1>(values, row, x);
}

void quantize_row_int15(const float* values, int64_t row, const QuantizedRows& x) {
  quantize_row<2>(values, row, x);
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
