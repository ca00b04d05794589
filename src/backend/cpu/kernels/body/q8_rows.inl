// Keys, values and queries as integers: rotation, rounding, and writing to a panel (kv_view.h).
#pragma once

#include "backend/cpu/kernels/attention_args.h"
#include "backend/cpu/kernels/body/exp2.inl"
#include "backend/cpu/kernels/body/q8_products.inl"
#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

constexpr float kLargestCode = 127.0F;  // of values
constexpr int64_t kRowsAhead = 3;

/// Lanes i and i + h, where i has no bit h, become their sum and their difference.
template <int h>
HEADRACE_INLINE F16x add_and_subtract(F16x x) {
  F16x sign;
  for (int lane = 0; lane < 16; ++lane) {
    sign.p[lane / HEADRACE_LANES][lane % HEADRACE_LANES] = (lane & h) == 0 ? 1.0F : -1.0F;
  }
  return swapped<h>(x) + x * sign;
}

/// Multiplies each stretch of `size` elements with Hadamard's matrix; size is the largest power of
/// two that divides dim, which is a multiple of 16.
HEADRACE_INLINE void rotate(float* x, int64_t dim) {
  const int64_t size = dim & -dim;
  for (int64_t i = 0; i < dim; i += 16) {
    F16x v = load(x + i);
    v = add_and_subtract<1>(v);
    v = add_and_subtract<2>(v);
    v = add_and_subtract<4>(v);
    store(x + i, add_and_subtract<8>(v));
  }
  for (int64_t h = 16; h < size; h *= 2) {
    for (int64_t i = 0; i < dim; i += 2 * h) {
      for (int64_t j = i; j < i + h; j += 16) {
        const F16x a = load(x + j);
        const F16x b = load(x + j + h);
        store(x + j, a + b);
        store(x + j + h, a - b);
      }
    }
  }
}

/// The largest magnitude; NaN if a number is not finite.
HEADRACE_INLINE float largest_magnitude(const float* x, int64_t n) {
  F16x largest = splat(0.0F);
  F16x poison = splat(0.0F);  // becomes NaN and stays NaN
  for (int64_t at = 0; at < n; at += 16) {
    const F16x v = load(x + at);
    F16x magnitude;
    HEADRACE_EACH magnitude.p[i] = (vf)((vi)v.p[i] & 0x7fffffff);
    largest = max(magnitude, largest);
    poison = mul_add(v, splat(0.0F), poison);
  }
  const float sum = reduce_add(poison);
  return sum == 0.0F ? reduce_max(largest) : __builtin_nanf("");
}

/// codes[i] = x[i] * factor, rounded and held within [-largest, largest].
HEADRACE_INLINE void round_to_codes(const float* x, int64_t n, float factor, float largest,
                                    int32_t* codes) {
  for (int64_t i = 0; i < n; i += 16) {
    const F16x v = min(max(load(x + i) * splat(factor), splat(-largest)), splat(largest));
    store_int(codes + i, round_to_integers(v));
  }
}

/// Copies head_dim numbers and pads them with zeros to dim.
HEADRACE_INLINE void copy_padded(const float* x, int64_t head_dim, int64_t dim, float* out) {
  std::memcpy(out, x, static_cast<size_t>(head_dim) * sizeof(float));
  for (int64_t i = head_dim; i < dim; ++i) out[i] = 0.0F;
}

/// The base-2 logarithm of a positive number, within 0.01.
HEADRACE_INLINE float near_log2(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127);
  const float f = static_cast<float>(bits & 0x7fffffU) * 0x1p-23F;  // x = 2^exponent * (1 + f)
  return exponent + f + 0.345F * f * (1.0F - f);
}

/// Writes a key's codes, two at a time.
template <class T>
HEADRACE_INLINE void place_key(const int32_t* codes, int64_t dim, T* out) {
  for (int64_t d = 0; d < dim; d += 2) {
    const T pair[] = {static_cast<T>(codes[d]), static_cast<T>(codes[d + 1])};
    std::memcpy(out + 16 * d, pair, sizeof(pair));
  }
}

HEADRACE_INLINE void store_key(const Q8Store& s, const float* k, int64_t slot) {
  float x[kMaxHeadDim];
  int32_t codes[kMaxHeadDim];
  copy_padded(k, s.shape.head_dim, s.shape.dim, x);
  rotate(x, s.shape.dim);
  const int64_t chunk = s.shape.dim / s.shape.chunks;
  const auto largest_code =
      static_cast<float>(s.shape.key_bytes == 1 ? kLargestByteKey : kLargestWordKey);
  auto* scales = reinterpret_cast<uint16_t*>(s.panel + s.shape.key_scales);
  for (int64_t c = 0; c < s.shape.chunks; ++c) {
    const float largest = largest_magnitude(x + c * chunk, chunk);
    float wanted = largest / largest_code;
    if (wanted > 65504.0F) wanted = 65504.0F;
    const uint16_t half = f32_to_f16(wanted);
    scales[c * 16 + slot] = half;
    const float scale = f16_to_f32(half);
    if (scale > 0.0F) {
      round_to_codes(x + c * chunk, chunk, 1.0F / scale, largest_code, codes + c * chunk);
    } else {  // zero, or not finite
      for (int64_t i = c * chunk; i < (c + 1) * chunk; ++i) codes[i] = 0;
    }
  }
  if (s.shape.key_bytes == 1) {
    place_key(codes, s.shape.dim, reinterpret_cast<int8_t*>(s.panel) + 2 * slot);
  } else {
    place_key(codes, s.shape.dim, reinterpret_cast<int16_t*>(s.panel) + 2 * slot);
  }
}

HEADRACE_INLINE void store_value(const Q8Store& s, const float* v, int64_t slot) {
  float x[kMaxHeadDim];
  int32_t codes[kMaxHeadDim];
  copy_padded(v, s.shape.head_dim, s.shape.dim, x);
  rotate(x, s.shape.dim);
  const float largest = largest_magnitude(x, s.shape.dim);
  // Zeros get any scale at all; a smaller one would have an infinite inverse.
  float wanted = largest > 0.0F ? near_log2(largest / kLargestCode) : -40.0F;
  if (wanted < -40.0F) wanted = -40.0F;
  if (!(largest == largest)) wanted = largest;
  const uint16_t half = f32_to_f16(wanted);
  reinterpret_cast<uint16_t*>(s.panel + s.shape.value_scales)[slot] = half;
  float inverse[16];
  store(inverse, largest > 0.0F ? exp2(splat(-f16_to_f32(half))) : splat(0.0F));
  if (!(largest == largest)) copy_padded(x, 0, s.shape.dim, x);
  round_to_codes(x, s.shape.dim, inverse[0], kLargestCode, codes);
  auto* values = reinterpret_cast<int8_t*>(s.panel + s.shape.values) + slot / 2 * 2 * s.shape.dim;
  for (int64_t d = 0; d < s.shape.dim; ++d) {
    values[2 * d + slot % 2] = static_cast<int8_t>(codes[d]);
  }
}

void store_q8(const Q8Store& args) {
  for (int64_t i = 0; i < args.num_tokens; ++i) {
    store_key(args, args.k + i * args.stride, args.slot + i);
    store_value(args, args.v + i * args.stride, args.slot + i);
  }
}

void quantize_queries(const float* const* q, int64_t num_rows, float scale, const Q8Queries& out,
                      const Q8Shape& shape) {
  float x[kMaxHeadDim];
  int32_t codes[kMaxHeadDim];
  const int64_t chunk = shape.dim / shape.chunks;
  const auto largest_code = static_cast<float>(kLargestQueryCode);
  // Both rotations lack a factor of 1 / sqrt(size).
  const float unit = scale * 1.44269504088896341F / static_cast<float>(shape.dim & -shape.dim);
  for (int64_t r = 0; r < num_rows; ++r) {
    // The next rows may lie far from this one.
    if (r + kRowsAhead < num_rows) prefetch(q[r + kRowsAhead], shape.head_dim * 4);
    copy_padded(q[r], shape.head_dim, shape.dim, x);
    rotate(x, shape.dim);
    for (int64_t c = 0; c < shape.chunks; ++c) {
      const float largest = largest_magnitude(x + c * chunk, chunk);
      if (largest > 0x1p-100F) {
        round_to_codes(x + c * chunk, chunk, largest_code / largest, largest_code, codes);
      } else {  // as good as zero, or not finite
        for (int64_t d = 0; d < chunk; ++d) codes[d] = 0;
      }
      out.factors[r * shape.chunks + c] = largest / largest_code * unit;
      int16_t* row = out.codes + r * shape.dim + c * chunk;
      for (int64_t d = 0; d < chunk; ++d) row[d] = static_cast<int16_t>(codes[d]);
    }
  }
}

void finish_row(float* row, float factor, float* out, const Q8Shape& shape) {
  rotate(row, shape.dim);
  const F16x f = splat(factor / static_cast<float>(shape.dim & -shape.dim));
  for (int64_t d = 0; d < shape.dim; d += 16) {
    const int64_t left = shape.head_dim - d;
    const F16x v = load(row + d) * f;
    if (left >= 16) {
      store(out + d, v);
    } else {
      store_part(out + d, v, left);
    }
  }
}

}  // namespace
}  // namespace headrace
