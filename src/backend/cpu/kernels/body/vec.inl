// Sixteen lanes of float or int32 as one, two or four machine vectors. The including file defines
// HEADRACE_LANES (4, 8 or 16 floats a vector) and HEADRACE_FMA (whether mul_add rounds once; with 4
// lanes: NEON, else plain C++).
// Without FMA every operation is elementwise and rounds as IEEE 754 says, so that the results are
// bit-identical whatever the width.
#pragma once

#if HEADRACE_LANES > 4
#include <immintrin.h>
#elif HEADRACE_FMA
#include <arm_neon.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/kernel_table.h"
#include "tensor/half.h"

#define HEADRACE_INLINE static inline __attribute__((always_inline))

namespace headrace {
namespace {

using vf = float __attribute__((vector_size(4 * HEADRACE_LANES)));
using vi = int32_t __attribute__((vector_size(4 * HEADRACE_LANES)));
using vu = uint32_t __attribute__((vector_size(4 * HEADRACE_LANES)));
constexpr int kParts = 16 / HEADRACE_LANES;
/// Vector registers of the machine.
#if HEADRACE_LANES == 16 || defined(__aarch64__)
constexpr int kVectorRegisters = 32;
#else
constexpr int kVectorRegisters = 16;
#endif

/// Sixteen floats.
struct F16x {
  vf p[kParts];
};
/// Sixteen int32; as a mask, each lane is 0 or -1.
struct I16x {
  vi p[kParts];
};

#define HEADRACE_EACH for (int i = 0; i < kParts; ++i)

HEADRACE_INLINE F16x load(const float* x) {
  F16x r;
  HEADRACE_EACH std::memcpy(&r.p[i], x + i * HEADRACE_LANES, sizeof(vf));
  return r;
}

HEADRACE_INLINE void store(float* out, F16x a) {
  HEADRACE_EACH std::memcpy(out + i * HEADRACE_LANES, &a.p[i], sizeof(vf));
}

/// The first n lanes; the others are `fill`.
HEADRACE_INLINE F16x load_part(const float* x, int64_t n, float fill) {
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = i < n ? x[i] : fill;
  return load(lanes);
}

HEADRACE_INLINE void store_part(float* out, F16x a, int64_t n) {
  float lanes[16];
  store(lanes, a);
  for (int64_t i = 0; i < n; ++i) out[i] = lanes[i];
}

HEADRACE_INLINE F16x splat(float x) {
  F16x r;
  HEADRACE_EACH r.p[i] = x - vf{};
  return r;
}

HEADRACE_INLINE I16x splat_int(int32_t x) {
  I16x r;
  HEADRACE_EACH r.p[i] = x - vi{};
  return r;
}

HEADRACE_INLINE I16x lane_indices() {
  I16x r;
  HEADRACE_EACH for (int j = 0; j < HEADRACE_LANES; ++j) r.p[i][j] = i * HEADRACE_LANES + j;
  return r;
}

HEADRACE_INLINE F16x operator+(F16x a, F16x b) {
  HEADRACE_EACH a.p[i] += b.p[i];
  return a;
}
HEADRACE_INLINE F16x operator-(F16x a, F16x b) {
  HEADRACE_EACH a.p[i] -= b.p[i];
  return a;
}
HEADRACE_INLINE F16x operator*(F16x a, F16x b) {
  HEADRACE_EACH a.p[i] *= b.p[i];
  return a;
}
HEADRACE_INLINE F16x operator/(F16x a, F16x b) {
  HEADRACE_EACH a.p[i] /= b.p[i];
  return a;
}

/// a * b + c; rounds once where HEADRACE_FMA is 1.
HEADRACE_INLINE vf mul_add_vector(vf a, vf b, vf c) {
#if HEADRACE_FMA && HEADRACE_LANES == 16
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif HEADRACE_FMA && HEADRACE_LANES == 8
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif HEADRACE_FMA
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return c + a * b;
#endif
}

/// The same for sixteen lanes.
HEADRACE_INLINE F16x mul_add(F16x a, F16x b, F16x c) {
  HEADRACE_EACH c.p[i] = mul_add_vector(a.p[i], b.p[i], c.p[i]);
  return c;
}

/// The same for one number.
HEADRACE_INLINE float mul_add_one(float a, float b, float c) {
#if HEADRACE_FMA
  return __builtin_fmaf(a, b, c);
#else
  return c + a * b;
#endif
}

HEADRACE_INLINE I16x less(F16x a, F16x b) {
  I16x r;
  HEADRACE_EACH r.p[i] = a.p[i] < b.p[i];
  return r;
}
HEADRACE_INLINE I16x less(I16x a, I16x b) {
  HEADRACE_EACH a.p[i] = a.p[i] < b.p[i];
  return a;
}

/// mask ? a : b, lane by lane.
HEADRACE_INLINE F16x select(I16x mask, F16x a, F16x b) {
  HEADRACE_EACH a.p[i] = (vf)((mask.p[i] & (vi)a.p[i]) | (~mask.p[i] & (vi)b.p[i]));
  return a;
}

/// The larger; b where either is NaN, or both are zeros.
HEADRACE_INLINE F16x max(F16x a, F16x b) {
#if HEADRACE_LANES == 16
  return {{(vf)_mm512_max_ps((__m512)a.p[0], (__m512)b.p[0])}};
#elif HEADRACE_LANES == 8
  HEADRACE_EACH a.p[i] = (vf)_mm256_max_ps((__m256)a.p[i], (__m256)b.p[i]);
  return a;
#else
  return select(less(b, a), a, b);
#endif
}
/// The smaller; b where either is NaN, or both are zeros.
HEADRACE_INLINE F16x min(F16x a, F16x b) {
#if HEADRACE_LANES == 16
  return {{(vf)_mm512_min_ps((__m512)a.p[0], (__m512)b.p[0])}};
#elif HEADRACE_LANES == 8
  HEADRACE_EACH a.p[i] = (vf)_mm256_min_ps((__m256)a.p[i], (__m256)b.p[i]);
  return a;
#else
  return select(less(a, b), a, b);
#endif
}

HEADRACE_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/// A row's results for `num_lanes` lanes that exist, of `num_vectors` vectors.
HEADRACE_INLINE void load_lanes(const float* x, int64_t num_lanes, int num_vectors, vf* out) {
  if (num_lanes >= num_vectors * HEADRACE_LANES) {
    std::memcpy(out, x, static_cast<size_t>(num_vectors) * sizeof(vf));
  } else {
    for (int v = 0; v < num_vectors; ++v) out[v] = vf{};
    std::memcpy(out, x, static_cast<size_t>(num_lanes) * sizeof(float));
  }
}
HEADRACE_INLINE void store_lanes(const vf* x, int64_t num_lanes, int num_vectors, float* out) {
  if (num_lanes >= num_vectors * HEADRACE_LANES) {
    std::memcpy(out, x, static_cast<size_t>(num_vectors) * sizeof(vf));
  } else {
    std::memcpy(out, x, static_cast<size_t>(num_lanes) * sizeof(float));
  }
}

/// Sum of the lanes, by halves.
HEADRACE_INLINE float reduce_add(F16x a) {
  float x[16];
  store(x, a);
  for (int n = 8; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) x[i] += x[i + n];
  }
  return x[0];
}

HEADRACE_INLINE float reduce_max(F16x a) {
  float x[16];
  store(x, a);
  for (int n = 8; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) x[i] = x[i] > x[i + n] ? x[i] : x[i + n];
  }
  return x[0];
}

HEADRACE_INLINE F16x load(const uint16_t* half) {
#if HEADRACE_LANES == 16
  F16x r;
  r.p[0] = (vf)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(half)));
  return r;
#elif HEADRACE_LANES == 8
  F16x r;
  HEADRACE_EACH r.p[i] =
      (vf)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half + 8 * i)));
  return r;
#elif HEADRACE_FMA
  F16x r;
  HEADRACE_EACH r.p[i] = (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(half + 4 * i)));
  return r;
#else
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = f16_to_f32(half[i]);
  return load(lanes);
#endif
}

/// Sixteen small integers as floats.
HEADRACE_INLINE F16x load_integers(const uint8_t* x) {
#if HEADRACE_LANES == 16
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return {{(vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))}};
#elif HEADRACE_LANES == 8
  F16x r;
  HEADRACE_EACH r.p[i] = (vf)_mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + 8 * i))));
  return r;
#else
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = static_cast<float>(x[i]);
  return load(lanes);
#endif
}
HEADRACE_INLINE F16x load_integers(const int8_t* x) {
#if HEADRACE_LANES == 16
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return {{(vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))}};
#elif HEADRACE_LANES == 8
  F16x r;
  HEADRACE_EACH r.p[i] = (vf)_mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + 8 * i))));
  return r;
#else
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = static_cast<float>(x[i]);
  return load(lanes);
#endif
}

HEADRACE_INLINE float load_one(const float* x) {
  return *x;
}
HEADRACE_INLINE float load_one(const uint16_t* x) {
  return f16_to_f32(*x);
}

}  // namespace
}  // namespace headrace
