// Activations to integers in one or two planes, see QuantizedRows.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// Rounds to integers (ties to even), writes them to the planes and returns their sum.
template <int kPlanes>
HEADRACE_INLINE int32_t quantize_lanes(F16x x, float inverse, int8_t* high, int8_t* low) {
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const F16x shifted = x * splat(inverse) + splat(12582912.0F);
  int32_t highs[16];
  int32_t lows[16] = {};
  I16x sum;
  HEADRACE_EACH {
    const vi q = (vi)shifted.p[i] - 0x4b400000;
    const vi h = kPlanes == 2 ? (q + 64) >> 7 : q;
    std::memcpy(highs + i * HEADRACE_LANES, &h, sizeof(h));
    if constexpr (kPlanes == 2) {
      const vi l = q - h * 128;
      std::memcpy(lows + i * HEADRACE_LANES, &l, sizeof(l));
    }
    sum.p[i] = q;
  }
  int32_t sums[16];
  std::memcpy(sums, &sum, sizeof(sum));
  int32_t total = 0;
  for (int i = 0; i < 16; ++i) {
    high[i] = static_cast<int8_t>(highs[i]);
    if constexpr (kPlanes == 2) low[i] = static_cast<int8_t>(lows[i]);
    total += sums[i];
  }
  return total;
}

template <int kPlanes>
HEADRACE_INLINE void quantize_row(const float* values, int64_t row, const QuantizedRows& x) {
  // The largest integer. In two planes: 127 in the high one, 0 in the low one.
  constexpr float kLargest = kPlanes == 2 ? 127.0F * 128.0F : 127.0F;
  for (int64_t block = 0; block < x.cols / kBlockCols; ++block) {
    const int64_t at = row * x.cols + block * kBlockCols;
    const int64_t block_at = row * (x.cols / kBlockCols) + block;
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
    int8_t* high = x.high + at;
    int8_t* low = kPlanes == 2 ? x.low + at : nullptr;
    const int32_t first = quantize_lanes<kPlanes>(a, inverse, high, low);
    const int32_t second =
        quantize_lanes<kPlanes>(b, inverse, high + 16, kPlanes == 2 ? low + 16 : nullptr);
    x.sums[2 * block_at] = first;
    x.sums[2 * block_at + 1] = second;
    x.scale[block_at] = scale + poison;
    x.scaled_sum[block_at] = x.scale[block_at] * static_cast<float>(first + second);
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
