// Online softmax over blocks of kAttentionBlockKeys keys at absolute positions.
//
// A row's result depends on its own keys only: keys outside its [lo, hi) get weight exactly 0, and
// a block in which it sees nothing multiplies its state by exactly 1. So rows may share a tile
// with any others.
#pragma once

#include "backend/cpu/kernels/body/math.inl"
#include "backend/cpu/kernels/body/steps.inl"
#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

// Stands for "no score yet"; finite, so that differences are never NaN.
constexpr float kNoScore = -1.0e30F;

/// Where one tile's keys and values lie.
template <class T>
struct Pages {
  const AttentionTile& a;

  const T* page(int64_t key) const {
    const int32_t block = a.block_table[key / a.block_tokens];
    return reinterpret_cast<const T*>(a.pages + static_cast<size_t>(block) * a.block_stride_bytes);
  }
  /// The panel [head_dim][16] that begins with `key`, a multiple of 16.
  const T* key_panel(int64_t key) const {
    return page(key) + a.key_offset + (key % a.block_tokens) * a.head_dim;
  }
  const T* value(int64_t key) const {
    return page(key) + a.value_offset + (key % a.block_tokens) * a.head_dim;
  }
};

// Sums of a tile: enough chains of multiply-adds to fill the pipeline, and few enough to stay in
// registers beside what they are made of.
constexpr int kTileSums = HEADRACE_LANES == 16 ? 16 : HEADRACE_LANES == 8 ? 4 : 2;
constexpr int kMostTileRows = HEADRACE_LANES == 4 ? 2 : 4;
constexpr int tile_width(int rows) {
  const int width = kTileSums / rows;
  return width > 4 ? 4 : width < 1 ? 1 : width;
}

/// scores[r][16 * i + lane] = q[r] . the keys of panel i, unscaled.
template <int kRows, int kPanelsAtOnce, class T>
HEADRACE_INLINE void score_panels(const T* const* panels, const float* const* q, int64_t head_dim,
                                  float* scores) {
  F16x sums[kRows][kPanelsAtOnce];
  for (auto& row : sums) {
    for (F16x& sum : row) sum = splat(0.0F);
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    F16x k[kPanelsAtOnce];
    for (int i = 0; i < kPanelsAtOnce; ++i) k[i] = load(panels[i] + 16 * d);
    for (int r = 0; r < kRows; ++r) {
      const F16x query = splat(q[r][d]);
      for (int i = 0; i < kPanelsAtOnce; ++i) sums[r][i] = mul_add(k[i], query, sums[r][i]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kPanelsAtOnce; ++i) {
      store(scores + r * kAttentionBlockKeys + 16 * i, sums[r][i]);
    }
  }
}

/// Scores of one row and 16 keys: scaled, capped, kNoScore where the row does not see the key.
HEADRACE_INLINE F16x finish_scores(const AttentionTile& a, F16x s, int64_t row, int64_t key) {
  s = s * splat(a.scale);
  if (a.soft_cap != 0.0F) s = splat(a.soft_cap) * tanh(s / splat(a.soft_cap));
  if (key < a.lo[row] || key + 16 > a.hi[row]) {
    const int64_t lo = a.lo[row] - key;
    const int64_t hi = a.hi[row] - key;
    const I16x lanes = lane_indices();
    const I16x below = less(lanes, splat_int(static_cast<int32_t>(lo < 0 ? 0 : lo > 16 ? 16 : lo)));
    const I16x inside = less(lanes, splat_int(static_cast<int32_t>(hi < 0    ? 0
                                                                   : hi > 16 ? 16
                                                                             : hi)));
    s = select(inside, s, splat(kNoScore));
    s = select(below, splat(kNoScore), s);
  }
  return s;
}

/// Weighted sums of values: of each row, what it holds times its correction, plus the values of
/// num_keys keys times their weights.
struct ValueSums {
  int64_t head_dim;
  int64_t num_keys;
  const float* weights;     ///< [rows], kAttentionBlockKeys apart
  const float* correction;  ///< [rows]
  float* out;               ///< [rows, head_dim]
};

/// Of kRows rows, kVectors times sixteen features from d on.
template <int kRows, int kVectors, class T>
HEADRACE_INLINE void add_features(const ValueSums& a, const T* const* values, int64_t d) {
  F16x sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kVectors; ++i) {
      sums[r][i] = load(a.out + r * a.head_dim + d + 16 * i) * splat(a.correction[r]);
    }
  }
  for (int64_t j = 0; j < a.num_keys; ++j) {
    F16x v[kVectors];
    for (int i = 0; i < kVectors; ++i) v[i] = load(values[j] + d + 16 * i);
    for (int r = 0; r < kRows; ++r) {
      const F16x weight = splat(a.weights[r * kAttentionBlockKeys + j]);
      for (int i = 0; i < kVectors; ++i) sums[r][i] = mul_add(v[i], weight, sums[r][i]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kVectors; ++i) store(a.out + r * a.head_dim + d + 16 * i, sums[r][i]);
  }
}

template <int kRows, class T>
HEADRACE_INLINE void add_values(const ValueSums& a, const T* const* values) {
  in_steps<tile_width(kRows)>(0, a.head_dim / 16, [&]<int kVectors>(int64_t vector) {
    add_features<kRows, kVectors>(a, values, 16 * vector);
  });
  for (int64_t d = a.head_dim / 16 * 16; d < a.head_dim; ++d) {
    for (int r = 0; r < kRows; ++r) {
      float sum = a.out[r * a.head_dim + d] * a.correction[r];
      for (int64_t j = 0; j < a.num_keys; ++j) {
        sum = mul_add_one(load_one(values[j] + d), a.weights[r * kAttentionBlockKeys + j], sum);
      }
      a.out[r * a.head_dim + d] = sum;
    }
  }
}

/// One block of keys [begin, end) that some row sees, within [block, block + 128).
template <class T>
void attend_block(const AttentionTile& a, int64_t block, int64_t begin, int64_t end) {
  const Pages<T> pages{a};
  const int64_t first_panel = begin / 16 * 16;
  float correction[kMaxQueryRows];
  const T* panels[kAttentionBlockKeys / 16];
  const int64_t num_panels = (end - first_panel + 15) / 16;
  for (int64_t i = 0; i < num_panels; ++i) panels[i] = pages.key_panel(first_panel + 16 * i);
  in_steps<kMostTileRows>(0, a.num_rows, [&]<int kRows>(int64_t r) {
    in_steps<tile_width(kRows)>(0, num_panels, [&]<int kPanelsAtOnce>(int64_t i) {
      score_panels<kRows, kPanelsAtOnce>(
          panels + i, a.q + r, a.head_dim,
          a.scratch + r * kAttentionBlockKeys + (first_panel - block) + 16 * i);
    });
  });
  for (int64_t r = 0; r < a.num_rows; ++r) {
    float* scores = a.scratch + r * kAttentionBlockKeys;
    F16x largest = splat(a.max[r]);
    for (int64_t key = first_panel; key < end; key += 16) {
      const F16x s = finish_scores(a, load(scores + (key - block)), r, key);
      store(scores + (key - block), s);
      largest = max(s, largest);
    }
    const float new_max = reduce_max(largest);
    F16x sum = splat(0.0F);
    for (int64_t key = first_panel; key < end; key += 16) {
      const F16x s = load(scores + (key - block));
      // A row that has seen nothing yet has new_max == kNoScore: its weights are 0 too.
      const F16x weight =
          select(less(s, splat(0.5F * kNoScore)), splat(0.0F), exp(s - splat(new_max)));
      store(scores + (key - block), weight);
      sum = sum + weight;
    }
    float factors[16];
    store(factors, exp(splat(a.max[r] - new_max)));
    correction[r] = factors[0];
    a.sum[r] = a.sum[r] * correction[r] + reduce_add(sum);
    a.max[r] = new_max;
  }
  const T* values[kAttentionBlockKeys];
  for (int64_t key = begin; key < end; ++key) values[key - begin] = pages.value(key);
  in_steps<kMostTileRows>(0, a.num_rows, [&]<int kRows>(int64_t r) {
    const ValueSums sums = {a.head_dim, end - begin,
                            a.scratch + r * kAttentionBlockKeys + (begin - block), correction + r,
                            a.out + r * a.head_dim};
    add_values<kRows>(sums, values);
  });
}

template <class T>
void attend_pages(const AttentionTile& a) {
  for (int64_t r = 0; r < a.num_rows; ++r) {
    a.max[r] = kNoScore;
    a.sum[r] = 0.0F;
  }
  for (int64_t i = 0; i < a.num_rows * a.head_dim; ++i) a.out[i] = 0.0F;
  int64_t lo = a.lo[0];
  int64_t hi = a.hi[0];
  for (int64_t r = 1; r < a.num_rows; ++r) {
    lo = a.lo[r] < lo ? a.lo[r] : lo;
    hi = a.hi[r] > hi ? a.hi[r] : hi;
  }
  for (int64_t block = a.begin; block < a.end; block += kAttentionBlockKeys) {
    int64_t begin = block > lo ? block : lo;
    int64_t end = block + kAttentionBlockKeys;
    end = end < a.end ? end : a.end;
    end = end < hi ? end : hi;
    if (begin < end) attend_block<T>(a, block, begin, end);
  }
}

}  // namespace

namespace HEADRACE_ISA_NAMESPACE {

void attend(const AttentionTile& args) {
  if (args.f16) {
    attend_pages<uint16_t>(args);
  } else {
    attend_pages<float>(args);
  }
}

void attend_merge(float* total_max, float* total_sum, float* total_out, float part_max,
                  float part_sum, const float* part_out, int64_t head_dim) {
  const float new_max = part_max > *total_max ? part_max : *total_max;
  float factors[16] = {*total_max - new_max, part_max - new_max};
  store(factors, exp(load(factors)));
  const float a = factors[0];
  const float b = factors[1];
  *total_sum = *total_sum * a + part_sum * b;
  *total_max = new_max;
  for (int64_t d = 0; d < head_dim; ++d) total_out[d] = total_out[d] * a + part_out[d] * b;
}

}  // namespace HEADRACE_ISA_NAMESPACE
}  // namespace headrace
