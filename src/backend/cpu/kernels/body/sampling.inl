// Looking for tokens in a row of logits; the contract is in sampling_kernels.h. Everything here
// waits for memory, so that what counts is the number of passes.
#pragma once

#include "backend/cpu/kernels/body/vec.inl"
#include "backend/cpu/kernels/sampling_kernels.h"

namespace headrace {
namespace {

constexpr float kMinusInf = -__builtin_inff();
/// Logits between a line that is read and the one asked for: the next page, which the machine's own
/// prefetching does not enter. Rows were written by a product that streamed through the caches.
constexpr int64_t kAhead = 1024;

/// Bit i: lane i of a is above that of b.
HEADRACE_INLINE uint32_t lanes_above(F16x a, F16x b) {
#if HEADRACE_LANES == 16
  return _mm512_cmp_ps_mask((__m512)a.p[0], (__m512)b.p[0], _CMP_GT_OQ);
#elif HEADRACE_LANES == 8
  uint32_t bits = 0;
  HEADRACE_EACH {
    const __m256 is_above = _mm256_cmp_ps((__m256)a.p[i], (__m256)b.p[i], _CMP_GT_OQ);
    bits |= static_cast<uint32_t>(_mm256_movemask_ps(is_above)) << (8 * i);
  }
  return bits;
#else
  float x[16];
  float y[16];
  store(x, a);
  store(y, b);
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<uint32_t>(x[i] > y[i]) << i;
  return bits;
#endif
}

/// Where NaN was met.
struct NaNs {
#if HEADRACE_LANES == 16
  __mmask16 met = 0;
#else
  I16x met = {};
#endif
};

HEADRACE_INLINE void note_nans(NaNs& nans, F16x a, F16x b) {
#if HEADRACE_LANES == 16
  nans.met =
      _kor_mask16(nans.met, _mm512_cmp_ps_mask((__m512)a.p[0], (__m512)b.p[0], _CMP_UNORD_Q));
#elif HEADRACE_LANES == 8
  HEADRACE_EACH nans.met.p[i] |= (vi)_mm256_cmp_ps((__m256)a.p[i], (__m256)b.p[i], _CMP_UNORD_Q);
#else
  HEADRACE_EACH nans.met.p[i] |= (a.p[i] != a.p[i]) | (b.p[i] != b.p[i]);
#endif
}

HEADRACE_INLINE bool any(const NaNs& nans) {
#if HEADRACE_LANES == 16
  return nans.met != 0;
#else
  int32_t lanes[16];
  std::memcpy(lanes, &nans.met, sizeof(lanes));
  int32_t all = 0;
  for (const int32_t lane : lanes) all |= lane;
  return all != 0;
#endif
}

HEADRACE_INLINE F16x load_logits(const float* x, int64_t i, int64_t n) {
  return i + 16 <= n ? load(x + i) : load_part(x + i, n - i, kMinusInf);
}

/// The largest of each lane of a block.
HEADRACE_INLINE F16x block_lanes(const float* x, int64_t n, NaNs& nans) {
  F16x first = splat(kMinusInf);
  F16x second = first;
  if (n == kSampleBlock) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kSampleBlock; i += 32) {
      // Hints: addresses past the end do no harm.
      __builtin_prefetch(x + i + kAhead);
      __builtin_prefetch(x + i + 16 + kAhead);
      const F16x a = load(x + i);
      const F16x b = load(x + i + 16);
      first = max(first, a);
      second = max(second, b);
      note_nans(nans, a, b);
    }
  } else {
    for (int64_t i = 0; i < n; i += 16) {
      const F16x a = load_logits(x, i, n);
      first = max(first, a);
      note_nans(nans, a, a);
    }
  }
  return max(first, second);
}

/// 1 / temperature in units of 2: weights are powers of 2. Kept finite, as the factor is.
HEADRACE_INLINE F16x binary_factor(float factor) {
  const float scaled = factor * 1.44269504088896341F;
  return splat(scaled < __FLT_MAX__ ? scaled : __FLT_MAX__);
}

/// exp((x - largest) * factor) of 16 logits, none above `largest`: within 2e-7 of itself and what
/// the rounding of the exponent t adds (6e-8 |t|). 0 where below 2^-126.
/// 2^t = 2^n 2^r with |r| <= 1/2; 2^r = 1 + r q(r) with q of degree 4 (least largest relative error
/// by iteratively reweighted least squares: 1.1e-7).
HEADRACE_INLINE F16x weights_of(F16x x, F16x largest, F16x by) {
  const F16x t = max((x - largest) * by, splat(-127.0F));
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const F16x magic = splat(12582912.0F);
  const F16x shifted = t + magic;
  const F16x r = t - (shifted - magic);
  F16x poly = splat(0.001326472731307149F);
  poly = mul_add(poly, r, splat(0.009671512991189957F));
  poly = mul_add(poly, r, splat(0.05550733581185341F));
  poly = mul_add(poly, r, splat(0.24022242426872253F));
  poly = mul_add(poly, r, splat(0.6931470036506653F));
  poly = mul_add(poly, r, splat(1.0F));
  F16x power;  // 2^n; n = -127 gives 0
  HEADRACE_EACH power.p[i] = (vf)(((vu)shifted.p[i] << 23) + 0x3f800000U);
  return poly * power;
}

/// A block's sum, always the same way: exp_find() counts on it.
HEADRACE_INLINE float block_weight(const float* x, int64_t n, F16x largest, F16x by) {
  F16x sums[2] = {splat(0.0F), splat(0.0F)};
  if (n == kSampleBlock) {
    for (int64_t i = 0; i < kSampleBlock; i += 32) {
      sums[0] = sums[0] + weights_of(load(x + i), largest, by);
      sums[1] = sums[1] + weights_of(load(x + i + 16), largest, by);
    }
  } else {
    for (int64_t i = 0; i < n; i += 16) {
      sums[0] = sums[0] + weights_of(load_logits(x, i, n), largest, by);
    }
  }
  return reduce_add(sums[0] + sums[1]);
}

HEADRACE_INLINE int64_t block_size(int64_t begin, int64_t n) {
  return smaller(n - begin, kSampleBlock);
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

static float chunk_maxima(const float* x, int64_t n, float* block_maxima, float* lane_maxima) {
  NaNs nans;
  F16x all = splat(kMinusInf);
  for (int64_t stripe = 0; stripe < n; stripe += kSampleStripe) {
    const int64_t end = smaller(n, stripe + kSampleStripe);
    F16x lanes = splat(kMinusInf);
    for (int64_t i = stripe; i < end; i += kSampleBlock) {
      const F16x block = block_lanes(x + i, block_size(i, n), nans);
      block_maxima[i / kSampleBlock] = reduce_max(block);
      lanes = max(lanes, block);
    }
    store(lane_maxima + stripe / kSampleStripe * 16, lanes);
    all = max(all, lanes);
  }
  return any(nans) ? __builtin_nanf("") : reduce_max(all);
}

static double exp_sum(const float* x, int64_t n, float largest, float factor) {
  const F16x top = splat(largest);
  const F16x by = binary_factor(factor);
  double sum = 0;
  for (int64_t i = 0; i < n; i += kSampleBlock) {
    sum += static_cast<double>(block_weight(x + i, block_size(i, n), top, by));
  }
  return sum;
}

static int64_t exp_find(const float* x, int64_t n, float largest, float factor, double point) {
  const F16x top = splat(largest);
  const F16x by = binary_factor(factor);
  double reached = 0;
  int64_t found = -1;  // the block, then the index
  double before = 0;   // the sum of the blocks before it
  for (int64_t i = 0; i < n; i += kSampleBlock) {
    const auto sum = static_cast<double>(block_weight(x + i, block_size(i, n), top, by));
    if (sum > 0) {
      found = i;
      before = reached;
    }
    reached += sum;
    if (reached > point) break;
  }
  if (found < 0) return -1;
  const int64_t block = found;
  const int64_t size = block_size(block, n);
  float weights[kSampleBlock];
  for (int64_t i = 0; i < size; i += 16) {
    const F16x part = weights_of(load_logits(x + block, i, size), top, by);
    store(weights + i, part);
  }
  reached = before;
  for (int64_t i = 0; i < size; ++i) {
    if (weights[i] > 0) found = block + i;
    reached += static_cast<double>(weights[i]);
    if (reached > point) break;
  }
  return found;
}

static int64_t collect_above(const float* x, int64_t begin, int64_t n, const float* block_maxima,
                             float above, TokenLogit* out, int64_t capacity, int64_t* count) {
  const F16x bound = splat(above);
  int64_t taken = *count;
  int64_t i = begin;
  for (; i < n; i += kSampleBlock) {
    if (!(block_maxima[i / kSampleBlock] > above)) continue;
    if (capacity - taken < kSampleBlock) break;
    const int64_t end = i + block_size(i, n);
    for (int64_t j = i; j < end; j += 16) {
      for (uint32_t bits = lanes_above(load_logits(x, j, end), bound); bits != 0;
           bits &= bits - 1) {
        const int64_t id = j + __builtin_ctz(bits);
        out[taken].id = static_cast<int32_t>(id);
        out[taken].logit = x[id];
        ++taken;
      }
    }
  }
  *count = taken;
  return i < n ? i : n;
}

const SamplingKernels sampling_kernels = {
    .chunk_maxima = chunk_maxima,
    .exp_sum = exp_sum,
    .exp_find = exp_find,
    .collect_above = collect_above,
};

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
