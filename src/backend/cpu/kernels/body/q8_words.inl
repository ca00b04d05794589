// Both products of attention over q8 and q12 pages with instructions that multiply 16-bit integers
// and add pairs to 32 bits, VPDPWSSD, VPMADDWD or SMULL and ADDP; codes of 8 bits are widened
// first.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/body/q8_products.inl"
#include "backend/cpu/kernels/body/steps.inl"

namespace headrace {
namespace {

// kWordRows times kWordVectors sums stay in registers, beside the codes they are made of.
#if HEADRACE_LANES == 16
using Words = __m512i;
constexpr int kWordRows = 4;
constexpr int kWordVectors = 4;

HEADRACE_INLINE Words load_words(const int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HEADRACE_INLINE Words load_words(const int16_t* p) {
  return _mm512_loadu_si512(p);
}
HEADRACE_INLINE Words splat_words(int32_t x) {
  return _mm512_set1_epi32(x);
}
HEADRACE_INLINE Words add_pairs(Words sum, Words a, Words b) {
  // Not the intrinsic: GCC 12 then copies each sum to another register and back.
  asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
HEADRACE_INLINE void store_words(int32_t* out, Words sums) {
  _mm512_storeu_si512(out, sums);
}

/// Rounds the weights of one row, all within [0, 32001].
HEADRACE_INLINE void round_weights(const F16x* w, int16_t* out) {
  for (int i = 0; i < kQ8Panels; ++i) {
    const __m512i rounded = _mm512_cvtps_epi32((__m512)w[i].p[0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i), _mm512_cvtepi32_epi16(rounded));
  }
}
#elif HEADRACE_LANES == 8
using Words = __m256i;
constexpr int kWordRows = 5;
constexpr int kWordVectors = 2;

HEADRACE_INLINE Words load_words(const int8_t* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
HEADRACE_INLINE Words load_words(const int16_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
HEADRACE_INLINE Words splat_words(int32_t x) {
  return _mm256_set1_epi32(x);
}
HEADRACE_INLINE Words add_pairs(Words sum, Words a, Words b) {
#ifdef __AVXVNNI__
  return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  // Else GCC computes all products first, for which there are not enough registers.
  asm("" : "+x"(sum));
  return sum;
#endif
}
HEADRACE_INLINE void store_words(int32_t* out, Words sums) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), sums);
}

/// Rounds the weights of one row, all within [0, 32001].
HEADRACE_INLINE void round_weights(const F16x* w, int16_t* out) {
  for (int i = 0; i < kQ8Panels; ++i) {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)w[i].p[0]),
                                             _mm256_cvtps_epi32((__m256)w[i].p[1]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * i),
                        _mm256_permute4x64_epi64(words, 0b11011000));
  }
}
#else
using Words = int32x4_t;
constexpr int kWordRows = 4;
constexpr int kWordVectors = 4;

HEADRACE_INLINE Words load_words(const int8_t* p) {
  return (Words)vmovl_s8(vld1_s8(p));
}
HEADRACE_INLINE Words load_words(const int16_t* p) {
  return (Words)vld1q_s16(p);
}
HEADRACE_INLINE Words splat_words(int32_t x) {
  return vdupq_n_s32(x);
}
HEADRACE_INLINE Words add_pairs(Words sum, Words a, Words b) {
  const auto x = (int16x8_t)a;
  const auto y = (int16x8_t)b;
  const Words low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
  return vaddq_s32(sum, vpaddq_s32(low, vmull_high_s16(x, y)));
}
HEADRACE_INLINE void store_words(int32_t* out, Words sums) {
  vst1q_s32(out, sums);
}

/// Rounds the weights of one row, all within [0, 32001].
HEADRACE_INLINE void round_weights(const F16x* w, int16_t* out) {
  for (int i = 0; i < kQ8Panels; ++i) {
    for (int part = 0; part < kParts; ++part) {
      vst1_s16(out + 16 * i + 4 * part, vmovn_s32(vcvtnq_s32_f32((float32x4_t)w[i].p[part])));
    }
  }
}
#endif

HEADRACE_INLINE Words splat_pair(const int16_t* pair) {
  int32_t x;
  std::memcpy(&x, pair, sizeof(x));
  return splat_words(x);
}

/// kRows rows from `row` on and kVectors vectors of keys; vector i has the keys from LANES * i on.
template <int kRows, int kVectors, class T>
void score_tile(const ScoreProduct& p, int64_t row, int64_t vector) {
  const int64_t steps = p.dim / p.chunks / 2;
  const int16_t* codes = p.codes + row * p.dim;
  const T* keys[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    keys[i] = reinterpret_cast<const T*>(p.panels[(vector + i) / kParts]) +
              (vector + i) % kParts * 2 * HEADRACE_LANES;
  }
  for (int64_t c = 0; c < p.chunks; ++c) {
    Words sums[kRows][kVectors];
    for (auto& sums_of_row : sums) {
      for (Words& sum : sums_of_row) sum = splat_words(0);
    }
#pragma GCC unroll 1
    for (int64_t step = c * steps; step < (c + 1) * steps; ++step) {
      Words k[kVectors];
      for (int i = 0; i < kVectors; ++i) k[i] = load_words(keys[i] + 32 * step);
      for (int r = 0; r < kRows; ++r) {
        const Words query = splat_pair(codes + r * p.dim + 2 * step);
        for (int i = 0; i < kVectors; ++i) sums[r][i] = add_pairs(sums[r][i], k[i], query);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      int32_t* out = p.out + ((row + r) * p.chunks + c) * kQ8BlockKeys + HEADRACE_LANES * vector;
      for (int i = 0; i < kVectors; ++i) store_words(out + HEADRACE_LANES * i, sums[r][i]);
    }
  }
}

/// kRows rows from `row` on and kVectors vectors of features; vector i has those from LANES * i on.
template <int kRows, int kVectors>
void value_tile(const ValueProduct& p, int64_t row, int64_t vector) {
  Words sums[kRows][kVectors];
  for (auto& sums_of_row : sums) {
    for (Words& sum : sums_of_row) sum = splat_words(0);
  }
#pragma GCC unroll 1
  for (int64_t panel = p.first; panel < p.last; ++panel) {
    const int8_t* tokens = p.panels[panel] + 2 * HEADRACE_LANES * vector;
    const int16_t* weights = p.weights + row * kQ8BlockKeys + 16 * panel;
#pragma GCC unroll 1
    for (int64_t pair = 0; pair < 8; ++pair) {
      Words v[kVectors];
      for (int i = 0; i < kVectors; ++i) {
        v[i] = load_words(tokens + 2 * (pair * p.dim + HEADRACE_LANES * i));
      }
      for (int r = 0; r < kRows; ++r) {
        const Words weight = splat_pair(weights + r * kQ8BlockKeys + 2 * pair);
        for (int i = 0; i < kVectors; ++i) sums[r][i] = add_pairs(sums[r][i], v[i], weight);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    int32_t* out = p.out + (row + r) * p.dim + HEADRACE_LANES * vector;
    for (int i = 0; i < kVectors; ++i) store_words(out + HEADRACE_LANES * i, sums[r][i]);
  }
}

struct WordProducts {
  template <class T>
  static void scores_of(const ScoreProduct& p) {
    in_steps<kWordRows>(0, p.num_rows, [&]<int kRows>(int64_t row) {
      in_steps<kWordVectors>(kParts * p.first, kParts * p.last, [&]<int kVectors>(int64_t vector) {
        score_tile<kRows, kVectors, T>(p, row, vector);
      });
    });
  }

  static void scores(const ScoreProduct& p) {
    if (p.key_bytes == 1) {
      scores_of<int8_t>(p);
    } else {
      scores_of<int16_t>(p);
    }
  }

  static void values(const ValueProduct& p) {
    in_steps<kWordRows>(0, p.num_rows, [&]<int kRows>(int64_t row) {
      in_steps<kWordVectors>(0, p.dim / HEADRACE_LANES, [&]<int kVectors>(int64_t vector) {
        value_tile<kRows, kVectors>(p, row, vector);
      });
    });
  }
};

}  // namespace
}  // namespace headrace
