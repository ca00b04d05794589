// Online softmax over blocks of kAttentionBlockKeys keys at absolute positions.
//
// A row's result depends on its own keys only: keys outside its [lo, hi) get weight exactly 0, and
// a block in which it sees nothing multiplies its state by exactly 1. So rows may share a tile
// with any others.
#pragma once

#include "backend/cpu/kernels/body/math.inl"
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

/// scores[r][0..16) = q[r] . the keys of a panel, unscaled.
template <int kRows, class T>
HEADRACE_INLINE void score_panel(const T* panel, const float* const* q, int64_t head_dim,
                                 float* scores) {
  F16x sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = splat(0.0F);
  for (int64_t d = 0; d < head_dim; ++d) {
    const F16x k = load(panel + 16 * d);
    for (int r = 0; r < kRows; ++r) sum[r] = mul_add(k, splat(q[r][d]), sum[r]);
  }
  for (int r = 0; r < kRows; ++r) store(scores + r * kAttentionBlockKeys, sum[r]);
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

/// out[r] = out[r] * correction[r] + sum over keys [lo, hi) of weights[r][key - block] * value.
template <int kRows, class T>
HEADRACE_INLINE void add_values(const AttentionTile& a, const T* const* values, int64_t num_keys,
                                const float* weights, const float* correction, float* out) {
  int64_t d = 0;
  for (; d + 16 <= a.head_dim; d += 16) {
    F16x sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = load(out + r * a.head_dim + d) * splat(correction[r]);
    for (int64_t j = 0; j < num_keys; ++j) {
      const F16x v = load(values[j] + d);
      for (int r = 0; r < kRows; ++r) {
        sum[r] = mul_add(v, splat(weights[r * kAttentionBlockKeys + j]), sum[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) store(out + r * a.head_dim + d, sum[r]);
  }
  for (; d < a.head_dim; ++d) {
    for (int r = 0; r < kRows; ++r) {
      float sum = out[r * a.head_dim + d] * correction[r];
      for (int64_t j = 0; j < num_keys; ++j) {
        sum = mul_add_one(load_one(values[j] + d), weights[r * kAttentionBlockKeys + j], sum);
      }
      out[r * a.head_dim + d] = sum;
    }
  }
}

/// Calls f.template operator()<n>(first) over groups of rows that fit the registers.
template <class F>
HEADRACE_INLINE void for_row_groups(int64_t num_rows, F&& f) {
  constexpr int kRows = HEADRACE_LANES == 4 ? 2 : HEADRACE_LANES == 8 ? 4 : 8;
  int64_t r = 0;
  for (; r + kRows <= num_rows; r += kRows) f.template operator()<kRows>(r);
  if constexpr (kRows > 4) {
    for (; r + 4 <= num_rows; r += 4) f.template operator()<4>(r);
  }
  if constexpr (kRows > 2) {
    for (; r + 2 <= num_rows; r += 2) f.template operator()<2>(r);
  }
  for (; r < num_rows; ++r) f.template operator()<1>(r);
}

/// One block of keys [begin, end) that some row sees, within [block, block + 128).
template <class T>
void attend_block(const AttentionTile& a, int64_t block, int64_t begin, int64_t end) {
  const Pages<T> pages{a};
  const int64_t first_panel = begin / 16 * 16;
  float correction[kMaxQueryRows];
  for (int64_t key = first_panel; key < end; key += 16) {
    const T* panel = pages.key_panel(key);
    for_row_groups(a.num_rows, [&]<int kRows>(int64_t r) {
      score_panel<kRows>(panel, a.q + r, a.head_dim,
                         a.scratch + r * kAttentionBlockKeys + (key - block));
    });
  }
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
  for_row_groups(a.num_rows, [&]<int kRows>(int64_t r) {
    add_values<kRows>(a, values, end - begin, a.scratch + r * kAttentionBlockKeys + (begin - block),
                      correction + r, a.out + r * a.head_dim);
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
