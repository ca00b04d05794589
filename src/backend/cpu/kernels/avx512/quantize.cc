// Activations to integers with wide steps, see QuantizedRows. Eight blocks at a time, so that what
// is one number a block is computed for all of them at once.
#include <immintrin.h>

#include "backend/cpu/kernels/body/row_tile.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace {
namespace {

// A block whose numbers are all below the first is as good as zero; one with numbers above the
// second counts as not finite. Between them scales neither underflow nor overflow, whatever weights
// they meet.
constexpr float kTiny = 1e-20F;
constexpr float kHuge = 1e30F;

// What the largest numbers outside of wide steps become, and in them: they round to 127, and to
// 127 * 128 + 63.
constexpr float kDense = 127.49F;
constexpr float kWide = 127.0F * 128.0F + 63.4F;

/// Blocks that are quantised together.
constexpr int64_t kGroup = 8;

/// The bits of a key that say which step it is of.
constexpr int32_t kStepBits = 7;

/// The largest magnitude of each of a block's steps as an integer, rounded down to let the lowest
/// bits say which step that is. NaN and infinity stay above all finite numbers.
HEADRACE_INLINE __m256i step_keys(const float* values) {
  const auto largest_of_two = [](__m512 x) {
    const __m512i magnitude =
        _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MAX));
    return _mm512_max_epi32(magnitude, _mm512_shuffle_epi32(magnitude, _MM_PERM_BADC));
  };
  // In lanes of 64 bits, twice each: steps 0, 4, 1, 5, 2, 6, 3, 7.
  __m512i steps = _mm512_unpacklo_epi64(largest_of_two(_mm512_loadu_ps(values)),
                                        largest_of_two(_mm512_loadu_ps(values + 16)));
  steps = _mm512_max_epi32(steps, _mm512_shuffle_epi32(steps, _MM_PERM_CDAB));
  const __m256i numbers = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i cleared =
      _mm256_andnot_si256(_mm256_set1_epi32(kStepBits), _mm512_cvtepi64_epi32(steps));
  return _mm256_or_si256(cleared, numbers);
}

/// Lane j of row i becomes lane i of row j.
HEADRACE_INLINE void transpose(__m256i* rows) {
  __m256i pairs[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
  __m256i fours[8];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256i* p = pairs + 4 * i;
    fours[4 * i] = _mm256_unpacklo_epi64(p[0], p[2]);
    fours[4 * i + 1] = _mm256_unpackhi_epi64(p[0], p[2]);
    fours[4 * i + 2] = _mm256_unpacklo_epi64(p[1], p[3]);
    fours[4 * i + 3] = _mm256_unpackhi_epi64(p[1], p[3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

/// What some blocks are quantised with, each [kGroup].
struct Group {
  alignas(32) float scale[kGroup];
  alignas(32) float inverse[kGroup];
  // Of the steps with the largest numbers: both, their columns, both as bytes.
  alignas(64) int64_t wide[kGroup];
  alignas(32) uint32_t columns[kGroup];
  alignas(32) uint32_t bytes[kGroup];
  alignas(32) int32_t first_sums[kGroup];
  alignas(32) int32_t second_sums[kGroup];
};

/// The three largest keys of each block, and from them scales and wide steps.
HEADRACE_INLINE void plan_group(const float* values, int64_t count, Group& group) {
  static_assert(kWideSteps == 2);
  __m256i keys[kGroup];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kGroup; ++i) {
    keys[i] = i < count ? step_keys(values + i * kBlockCols) : _mm256_setzero_si256();
  }
  transpose(keys);
  __m256i largest = keys[0];
  __m256i second = _mm256_setzero_si256();
  __m256i third = second;
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) {
    __m256i rest = _mm256_min_epi32(largest, keys[i]);
    largest = _mm256_max_epi32(largest, keys[i]);
    const __m256i next = _mm256_min_epi32(second, rest);
    second = _mm256_max_epi32(second, rest);
    third = _mm256_max_epi32(third, next);
  }
  const __m256i bits = _mm256_set1_epi32(kStepBits);
  const auto store = [](uint32_t* out, __m256i x) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out), x);
  };
  const __m256i wide[] = {_mm256_and_si256(largest, bits), _mm256_and_si256(second, bits)};
  _mm512_store_si512(group.wide,
                     _mm512_or_si512(_mm512_cvtepu32_epi64(wide[0]),
                                     _mm512_slli_epi64(_mm512_cvtepu32_epi64(wide[1]), 32)));
  const auto columns = [](__m256i step) {
    return _mm256_sllv_epi32(_mm256_set1_epi32(0xf), _mm256_slli_epi32(step, 2));
  };
  store(group.columns, _mm256_or_si256(columns(wide[0]), columns(wide[1])));
  store(group.bytes, _mm256_or_si256(wide[0], _mm256_slli_epi32(wide[1], 8)));
  // No smaller than the numbers they stand for.
  const auto rounded_up = [&](__m256i key) {
    return _mm256_castsi256_ps(_mm256_or_si256(key, bits));
  };
  const __m256 most = rounded_up(largest);
  const __m256 of_rest = _mm256_mul_ps(rounded_up(third), _mm256_set1_ps(1.0F / kDense));
  const __m256 of_most = _mm256_mul_ps(most, _mm256_set1_ps(1.0F / kWide));
  __m256 scale = _mm256_max_ps(of_rest, of_most);
  const __mmask8 some = _mm256_cmp_ps_mask(most, _mm256_set1_ps(kTiny), _CMP_GT_OQ);
  const __mmask8 finite = _mm256_cmp_ps_mask(most, _mm256_set1_ps(kHuge), _CMP_LT_OQ);
  scale = _mm256_maskz_mov_ps(some, scale);
  const __m256 inverse = _mm256_maskz_div_ps(some & finite, _mm256_set1_ps(1.0F), scale);
  // The scale says NaN; integers are zeros, so that their sums stay in range.
  scale = _mm256_mask_mov_ps(_mm256_set1_ps(__builtin_nanf("")), finite, scale);
  _mm256_store_ps(group.scale, scale);
  _mm256_store_ps(group.inverse, inverse);
}

/// Rounds to nearest, ties to even. An inverse of 0 stands for zeros, whatever the numbers are.
HEADRACE_INLINE __m512i scaled_integers(const float* values, float inverse) {
  const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(values), _mm512_set1_ps(inverse));
  return _mm512_maskz_cvtps_epi32(static_cast<__mmask16>(inverse == 0.0F ? 0 : 0xffff), x);
}

/// Where rows lie; their own so that stores of bytes cannot change it.
struct Places {
  int8_t* high;
  int8_t* wide;
  uint8_t* wide_steps;
};

/// Writes the integers of block i of a group, whose place among scales and the like is `at`.
/// Returns the sums of its steps.
HEADRACE_INLINE __m256i quantize_block(const float* values, const Group& group, int64_t i,
                                       int64_t at, const Places& x) {
  const float inverse = group.inverse[i];
  // At most 127 * 128, so that 16 bits hold them; packing leaves fours of the halves in turns.
  const __m512i packed =
      _mm512_packs_epi32(scaled_integers(values, inverse), scaled_integers(values + 16, inverse));
  const __m512i integers =
      _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed);
  // 0 outside of wide steps.
  const __m512i upper = _mm512_maskz_srai_epi16(
      group.columns[i], _mm512_add_epi16(integers, _mm512_set1_epi16(64)), 7);
  const __m512i lower = _mm512_sub_epi16(integers, _mm512_slli_epi16(upper, 7));
  const __m512i bytes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                                 _mm512_packs_epi16(lower, upper));
  const __m256i high = _mm512_castsi512_si256(bytes);
  const __m256i wide = _mm512_extracti64x4_epi64(bytes, 1);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(x.high + at * kBlockCols), high);
  const __m256i both = _mm256_permutevar8x32_epi32(wide, _mm256_set1_epi64x(group.wide[i]));
  _mm_storeu_si64(x.wide + at * kWideSteps * kStepCols, _mm256_castsi256_si128(both));
  std::memcpy(x.wide_steps + at * kWideSteps, &group.bytes[i], kWideSteps);
  const __m256i ones = _mm256_set1_epi8(1);
  const __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), ones, wide);
  return _mm256_dpbusd_epi32(_mm256_slli_epi32(sums, 7), ones, high);
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void quantize_row(const float* values, int64_t row, const QuantizedRows& x) {
  const int64_t num_blocks = x.cols / kBlockCols;
  const RowTile tile = tile_of(x, row);
  const Places places = {x.high, x.wide, x.wide_steps};
  Group group;
  for (int64_t first = 0; first < num_blocks; first += kGroup) {
    const int64_t count = smaller(kGroup, num_blocks - first);
    plan_group(values + first * kBlockCols, count, group);
    __m256i sums[kGroup];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block = first + i;
      sums[i] = quantize_block(values + block * kBlockCols, group, i,
                               tile.block_at(block) + tile.row_in_tile, places);
    }
    for (int64_t i = count; i < kGroup; ++i) sums[i] = _mm256_setzero_si256();
      // Steps 0 to 3 of four blocks in the lower half, steps 4 to 7 in the upper.
#pragma GCC unroll 2
    for (int i = 0; i < kGroup; i += 4) {
      const __m256i four = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[i], sums[i + 1]),
                                             _mm256_hadd_epi32(sums[i + 2], sums[i + 3]));
      _mm_store_si128(reinterpret_cast<__m128i*>(group.first_sums + i),
                      _mm256_castsi256_si128(four));
      _mm_store_si128(reinterpret_cast<__m128i*>(group.second_sums + i),
                      _mm256_extracti128_si256(four, 1));
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t block_at = tile.block_at(first + i);
      const int64_t at = block_at + tile.row_in_tile;
      int32_t* negated = x.negated_sums + 3 * block_at + tile.row_in_tile;
      const int32_t sum = group.first_sums[i] + group.second_sums[i];
      negated[0] = -sum;
      negated[tile.height] = -group.first_sums[i];
      negated[2 * tile.height] = -group.second_sums[i];
      x.scale[at] = group.scale[i];
      x.scaled_sum[at] = group.scale[i] * static_cast<float>(sum);
    }
  }
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
