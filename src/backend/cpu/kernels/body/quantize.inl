// Activations to integers, see QuantizedRows. What machines do differently is in
// <set>/quantize_steps.inl:
//   largest_magnitude_bits(a, b): the bits of the largest magnitude of 32 columns; 0x7f800000 and
//     more if a number is not finite.
//   store_bytes(a, b, out, sum_a, sum_b): writes 32 integers as bytes, and their sums.
//   store_whole(a, b, shift, out): writes 32 integers, shifted left, in the order of
//     QuantizedRows::whole.
#pragma once

#include "backend/cpu/kernels/body/row_tile.inl"
#if defined(__aarch64__)
#include "backend/cpu/kernels/neon/quantize_steps.inl"
#else
#include "backend/cpu/kernels/avx2/quantize_steps.inl"
#endif

namespace headrace {
namespace {

/// The 32 columns of a block.
struct BlockValues {
  F16x a;
  F16x b;
};

HEADRACE_INLINE I16x scaled_integers(F16x x, float inverse) {
  // Adding 1.5 * 2^23 rounds to an integer (ties to even), which then stands in the low bits.
  const F16x shifted = x * splat(inverse) + splat(12582912.0F);
  I16x integers;
  HEADRACE_EACH integers.p[i] = (vi)shifted.p[i] - 0x4b400000;
  return integers;
}

struct HalfSums {
  int32_t first = 0;
  int32_t second = 0;
};

/// Writes the integers' bytes and adds them up.
HEADRACE_INLINE HalfSums store_plane(I16x a, I16x b, int8_t* out) {
  HalfSums sums;
  store_bytes(a, b, out, &sums.first, &sums.second);
  return sums;
}

/// Both planes of integers of at most 127 * 128.
HEADRACE_INLINE HalfSums store_two_planes(I16x a, I16x b, int8_t* high, int8_t* low) {
  I16x high_a;
  I16x high_b;
  I16x low_a;
  I16x low_b;
  HEADRACE_EACH {
    high_a.p[i] = (a.p[i] + 64) >> 7;
    high_b.p[i] = (b.p[i] + 64) >> 7;
    low_a.p[i] = a.p[i] - (high_a.p[i] << 7);
    low_b.p[i] = b.p[i] - (high_b.p[i] << 7);
  }
  const HalfSums highs = store_plane(high_a, high_b, high);
  const HalfSums lows = store_plane(low_a, low_b, low);
  return {128 * highs.first + lows.first, 128 * highs.second + lows.second};
}

/// The high plane alone, of integers of at most 127.
HEADRACE_INLINE HalfSums store_high_plane(I16x a, I16x b, int8_t* high, int8_t* low) {
  const HalfSums highs = store_plane(a, b, high);
  std::memset(low, 0, kBlockCols);
  return {128 * highs.first, 128 * highs.second};
}

HEADRACE_INLINE BlockValues load_block(const float* values) {
  return {load(values), load(values + 16)};
}

/// A block has a low plane if its largest number is this many times the mean of such numbers over
/// the row: rounding to a high plane alone loses the more, the larger that number is.
constexpr float kLargeBlock = 0.9F;

// A block whose numbers are all below the first is as good as zero; one with numbers above the
// second counts as not finite. Between them scales neither underflow nor overflow, whatever weights
// they meet, so that dividing by 128 is exact.
constexpr float kTiny = 1e-20F;
constexpr float kHuge = 1e30F;

/// Writes block `block` of a row, whose place among scales and the like is `at`, `height` apart.
/// Its largest magnitude stands in x.scale[at].
HEADRACE_INLINE void quantize_block(BlockValues values, float mean_largest, int64_t at,
                                    int32_t* negated_sums, int64_t height, const QuantizedRows& x) {
  const float largest = x.scale[at];
  const bool has_low = largest > kLargeBlock * mean_largest;
  float scale = 0.0F;
  float inverse = 0.0F;
  if (largest > kTiny) {
    scale = largest / 127.0F;
    inverse = (has_low ? 127.0F * 128.0F : 127.0F) / largest;
  }
  if (!(largest < kHuge)) {
    // The scale says NaN; integers are zeros, so that their sums stay in range.
    values = {splat(0.0F), splat(0.0F)};
    scale = __builtin_nanf("");
    inverse = 0.0F;
  }
  const I16x a = scaled_integers(values.a, inverse);
  const I16x b = scaled_integers(values.b, inverse);
  int8_t* high = x.high + at * kBlockCols;
  int8_t* low = x.low + at * kBlockCols;
  const HalfSums sums =
      has_low ? store_two_planes(a, b, high, low) : store_high_plane(a, b, high, low);
  if (x.has_whole) store_whole(a, b, has_low ? 0 : 7, x.whole + at * kBlockCols);
  negated_sums[0] = -(sums.first + sums.second);
  negated_sums[height] = -sums.first;
  negated_sums[2 * height] = -sums.second;
  x.has_low[at] = has_low ? 1 : 0;
  x.scale[at] = scale;
  x.scaled_sum[at] = scale * 0x1p-7F * static_cast<float>(sums.first + sums.second);
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void quantize_row(const float* values, int64_t row, const QuantizedRows& x) {
  const int64_t num_blocks = x.cols / kBlockCols;
  const RowTile tile = tile_of(x, row);
  float sum_of_largest = 0.0F;
  for (int64_t block = 0; block < num_blocks; ++block) {
    const BlockValues columns = load_block(values + block * kBlockCols);
    const int32_t bits = largest_magnitude_bits(columns.a, columns.b);
    float largest;
    std::memcpy(&largest, &bits, sizeof(largest));
    x.scale[tile.block_at(block) + tile.row_in_tile] = largest;
    sum_of_largest += largest;
  }
  const float mean_largest = sum_of_largest / static_cast<float>(num_blocks);
  for (int64_t block = 0; block < num_blocks; ++block) {
    const int64_t block_at = tile.block_at(block);
    quantize_block(load_block(values + block * kBlockCols), mean_largest,
                   block_at + tile.row_in_tile, x.negated_sums + 3 * block_at + tile.row_in_tile,
                   tile.height, x);
  }
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
