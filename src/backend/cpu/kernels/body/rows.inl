// Operations on one row of activations: norms, rotation, activation functions, sums, limits, the
// largest value, conversion to f16.
#pragma once

#include "backend/cpu/kernels/body/math.inl"
#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

/// out[i] = f(load(i)) over a row, 16 lanes at a time; the tail runs through the same f.
template <class F>
HEADRACE_INLINE void for_lanes(int64_t n, float* out, F&& f) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, f(i, int64_t{16}));
  if (i < n) store_part(out + i, f(i, n - i), n - i);
}

HEADRACE_INLINE F16x load_row(const float* x, int64_t i, int64_t count) {
  return count == 16 ? load(x + i) : load_part(x + i, count, 0.0F);
}

HEADRACE_INLINE void store_row(float* out, int64_t count, F16x x) {
  if (count == 16) {
    store(out, x);
  } else {
    store_part(out, x, count);
  }
}

/// Sums a row: add(sum, values) adds 16 of them, of which those past the end are `fill`.
template <class F>
HEADRACE_INLINE float sum_row(const float* x, int64_t n, float fill, F&& add) {
  // Fixed chunks, added in order.
  constexpr int64_t kChunk = 4096;
  float total = 0.0F;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    F16x sum = splat(0.0F);
    for (int64_t i = begin; i < end; i += 16) {
      sum = add(sum, end - i < 16 ? load_part(x + i, end - i, fill) : load(x + i));
    }
    total += reduce_add(sum);
  }
  return total;
}

/// out = f(x) * up, or f(x) where up is null.
template <class F>
HEADRACE_INLINE void activate_row(const float* x, const float* up, int64_t n, float* out, F&& f) {
  if (up == nullptr) {
    for_lanes(n, out, [&](int64_t i, int64_t count) { return f(load_row(x, i, count)); });
  } else {
    for_lanes(n, out, [&](int64_t i, int64_t count) {
      return f(load_row(x, i, count)) * load_row(up, i, count);
    });
  }
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out) {
  const float squares = sum_row(x, n, 0.0F, [](F16x sum, F16x v) { return mul_add(v, v, sum); });
  const float mean = squares / static_cast<float>(n);
  const F16x inverse = splat(1.0F / __builtin_sqrtf(mean + eps));
  for_lanes(n, out, [&](int64_t i, int64_t count) {
    return load_row(x, i, count) * inverse * load_row(weight, i, count);
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, int64_t n, float eps,
                float* out) {
  const float mean =
      sum_row(x, n, 0.0F, [](F16x sum, F16x v) { return sum + v; }) / static_cast<float>(n);
  const F16x center = splat(mean);
  const float squares = sum_row(x, n, mean, [&](F16x sum, F16x v) {
    const F16x from_center = v - center;
    return mul_add(from_center, from_center, sum);
  });
  const float variance = squares / static_cast<float>(n);
  const F16x inverse = splat(1.0F / __builtin_sqrtf(variance + eps));
  for_lanes(n, out, [&](int64_t i, int64_t count) {
    const F16x normed = (load_row(x, i, count) - center) * inverse * load_row(weight, i, count);
    return bias == nullptr ? normed : normed + load_row(bias, i, count);
  });
}

void rope_neox(float* head, const float* cos, const float* sin, int64_t num_pairs) {
  float* second = head + num_pairs;
  for (int64_t i = 0; i < num_pairs; i += 16) {
    const int64_t count = num_pairs - i < 16 ? num_pairs - i : 16;
    const F16x a = load_row(head, i, count);
    const F16x b = load_row(second, i, count);
    const F16x c = load_row(cos, i, count);
    const F16x s = load_row(sin, i, count);
    store_row(head + i, count, a * c - b * s);
    store_row(second + i, count, b * c + a * s);
  }
}

void activate(Activation activation, const float* x, const float* up, int64_t n, float* out) {
  switch (activation) {
    case Activation::silu:
      activate_row(x, up, n, out, [](F16x v) { return v / (splat(1.0F) + exp(splat(0.0F) - v)); });
      break;
    case Activation::gelu_tanh:
      // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
      activate_row(x, up, n, out, [](F16x v) {
        const F16x inner = splat(0.7978845608028654F) * (v + splat(0.044715F) * v * v * v);
        return splat(0.5F) * v * (splat(1.0F) + tanh(inner));
      });
      break;
    case Activation::gelu:
      activate_row(x, up, n, out, [](F16x v) { return v * normal_distribution(v); });
      break;
    case Activation::quick_gelu:
      activate_row(x, up, n, out,
                   [](F16x v) { return v / (splat(1.0F) + exp(splat(-1.702F) * v)); });
      break;
    case Activation::relu:
      activate_row(x, up, n, out, [](F16x v) { return max(splat(0.0F), v); });  // keeps NaN
      break;
  }
}

void add(float* x, const float* delta, int64_t n) {
  for_lanes(n, x, [&](int64_t i, int64_t count) {
    return load_row(x, i, count) + load_row(delta, i, count);
  });
}

void scale(const float* x, float factor, int64_t n, float* out) {
  for_lanes(n, out,
            [&](int64_t i, int64_t count) { return load_row(x, i, count) * splat(factor); });
}

void add_scaled(float* x, const float* delta, float factor, int64_t n) {
  for_lanes(n, x, [&](int64_t i, int64_t count) {
    return mul_add(splat(factor), load_row(delta, i, count), load_row(x, i, count));
  });
}

void softmax(const float* x, int64_t n, float* out) {
  float largest = x[0];
  for (int64_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  for_lanes(n, out,
            [&](int64_t i, int64_t count) { return exp(load_row(x, i, count) - splat(largest)); });
  const float sum = sum_row(out, n, 0.0F, [](F16x total, F16x v) { return total + v; });
  for_lanes(n, out, [&](int64_t i, int64_t count) { return load_row(out, i, count) / splat(sum); });
}

void sigmoid(const float* x, int64_t n, float* out) {
  for_lanes(n, out, [&](int64_t i, int64_t count) { return logistic(load_row(x, i, count)); });
}

void soft_cap(float* x, float cap, int64_t n) {
  for_lanes(n, x, [&](int64_t i, int64_t count) {
    return splat(cap) * tanh(load_row(x, i, count) / splat(cap));
  });
}

void clamp(float* x, float limit, int64_t n) {
  for_lanes(n, x, [&](int64_t i, int64_t count) {
    return min(splat(limit), max(splat(-limit), load_row(x, i, count)));  // keeps NaN
  });
}

void gate(float* x, float gate, int64_t n) {
  const F16x factor = logistic(splat(gate));
  for_lanes(n, x, [&](int64_t i, int64_t count) { return load_row(x, i, count) * factor; });
}

int64_t argmax(const float* x, int64_t n) {
  F16x best = splat(-__builtin_inff());
  F16x poison = splat(0.0F);  // becomes NaN and stays NaN
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F16x v = load(x + i);
    best = max(best, v);
    poison = poison + v * splat(0.0F);
  }
  float largest = reduce_max(best);
  bool suspect = !(reduce_add(poison) == 0.0F);  // an infinity also gives NaN here
  for (; i < n; ++i) {
    largest = largest > x[i] ? largest : x[i];
    suspect |= !(x[i] == x[i]);
  }
  if (suspect) {
    for (int64_t j = 0; j < n; ++j) {
      if (!(x[j] == x[j])) return -1;
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    if (x[j] == largest) return j;
  }
  return -1;
}

void to_f16(const float* x, int64_t n, uint16_t* out) {
  int64_t i = 0;
#if HEADRACE_LANES == 4 && HEADRACE_FMA
  const float32x4_t largest = vdupq_n_f32(65504.0F);
  for (; i + 4 <= n; i += 4) {
    // These keep NaN.
    const float32x4_t v = vmaxq_f32(vminq_f32(vld1q_f32(x + i), largest), vnegq_f32(largest));
    vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(v)));
  }
#endif
  for (; i < n; ++i) {
    float v = x[i];
    if (v > 65504.0F) v = 65504.0F;
    if (v < -65504.0F) v = -65504.0F;
    out[i] = f32_to_f16(v);
  }
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
