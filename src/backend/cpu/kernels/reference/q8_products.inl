// Attention's products as plain loops.
#pragma once

#include <cstdint>
#include <cstring>

#include "backend/cpu/kernels/body/q8_products.inl"

namespace headrace {
namespace {

/// Rounds the weights of one row, all within [0, 32001].
HEADRACE_INLINE void round_weights(const F16x* w, int16_t* out) {
  for (int i = 0; i < kQ8Panels; ++i) {
    const I16x codes = round_to_integers(w[i]);
    int32_t lanes[16];
    std::memcpy(lanes, &codes, sizeof(codes));
    for (int lane = 0; lane < 16; ++lane) out[16 * i + lane] = static_cast<int16_t>(lanes[lane]);
  }
}

struct PlainProducts {
  template <class T>
  static void scores_of(const ScoreProduct& p) {
    const int64_t chunk = p.dim / p.chunks;
    for (int64_t at = 0; at < p.num_rows * p.chunks; ++at) {
      const int64_t c = at % p.chunks;
      const int16_t* codes = p.codes + at / p.chunks * p.dim;
      for (int64_t key = 16 * p.first; key < 16 * p.last; ++key) {
        const T* panel = reinterpret_cast<const T*>(p.panels[key / 16]) + key % 16 * 2;
        int32_t sum = 0;
        for (int64_t d = c * chunk; d < (c + 1) * chunk; ++d) {
          sum += codes[d] * panel[d / 2 * 32 + d % 2];
        }
        p.out[at * kQ8BlockKeys + key] = sum;
      }
    }
  }

  static void scores(const ScoreProduct& p) {
    if (p.key_bytes == 1) {
      scores_of<int8_t>(p);
    } else {
      scores_of<int16_t>(p);
    }
  }

  static void values(const ValueProduct& p) {
    for (int64_t r = 0; r < p.num_rows; ++r) {
      for (int64_t d = 0; d < p.dim; ++d) {
        int32_t sum = 0;
        for (int64_t t = 16 * p.first; t < 16 * p.last; ++t) {
          sum += p.weights[r * kQ8BlockKeys + t] *
                 p.panels[t / 16][t % 16 / 2 * 2 * p.dim + 2 * d + t % 2];
        }
        p.out[r * p.dim + d] = sum;
      }
    }
  }
};

}  // namespace
}  // namespace headrace
