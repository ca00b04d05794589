// Online softmax over q8 and q12 pages, in blocks of kQ8BlockKeys keys at absolute positions.
//
// Both products are sums of integers, hence exact: which kernel computes them, and for how many
// rows, makes no difference. All else is computed for each row on its own, and a row takes part in
// no block in which it sees nothing. So rows may share a tile with any others.
//
// A key's score in base 2 is u = sum over chunks of factor * scale of key * (codes of query . codes
// of key), + base-2 logarithm of the value's scale. With v the codes of values and s their scales,
// attention is
//   sum 2^u v / sum (2^u / s);
// in each block the weights 2^u are brought to at most 32000 and rounded before they meet the
// codes. (8 bits would not do: where one key gets nearly all of the weight, the others share what
// is left.)
//
// attend_q8 is instantiated with a class of static functions scores(ScoreProduct) and
// values(ValueProduct). The including file also defines round_weights(w, out).
#pragma once

#include "backend/cpu/kernels/attention_args.h"
#include "backend/cpu/kernels/body/exp2.inl"
#include "backend/cpu/kernels/body/math.inl"
#include "backend/cpu/kernels/body/q8_products.inl"
#include "backend/cpu/kernels/body/vec.inl"

namespace headrace {
namespace {

// Stands for "no score yet"; finite, so that differences are never NaN.
constexpr float kNoQ8Score = -1.0e30F;
// 32000, and not 32767, since exp2_short may be a little too large.
constexpr float kLog2OfLargestWeight = 14.9657843F;

/// Memory of one call, cut from Q8AttentionTile::scratch.
struct Q8Scratch {
  Q8Block block;
  float* lane_sums;      ///< [rows][16]: sums of weights, by lane
  float* block_sums;     ///< [kQ8GroupRows][16]: the same of one block
  int32_t* products;     ///< [kQ8GroupRows][chunks][64]
  int16_t* weights;      ///< [kQ8GroupRows][64]
  int32_t* sums;         ///< [kQ8GroupRows][dim]
  float* block_max;      ///< [kQ8GroupRows]
  float* old_factors;    ///< [kQ8GroupRows]
  float* block_factors;  ///< [kQ8GroupRows]

  explicit Q8Scratch(const Q8AttentionTile& a) {
    float* next = a.scratch;
    const auto take = [&](int64_t floats) {
      float* p = next;
      next += floats;
      return p;
    };
    block.key_scales = take(a.shape.chunks * kQ8BlockKeys);
    block.value_logs = take(kQ8BlockKeys);
    block.value_inverses = take(kQ8BlockKeys);
    lane_sums = take(kMaxQueryRows * 16);
    block_sums = take(kQ8GroupRows * 16);
    products = reinterpret_cast<int32_t*>(take(kQ8GroupRows * a.shape.chunks * kQ8BlockKeys));
    weights = reinterpret_cast<int16_t*>(take(kQ8GroupRows * kQ8BlockKeys / 2));
    sums = reinterpret_cast<int32_t*>(take(kQ8GroupRows * a.shape.dim));
    block_max = take(kQ8GroupRows);
    old_factors = take(kQ8GroupRows);
    block_factors = take(kQ8GroupRows);
  }
};

/// The lanes of `x` whose keys, from `key` on, lie in [lo, hi); elsewhere `other`.
HEADRACE_INLINE F16x keep_visible(F16x x, int64_t key, int64_t lo, int64_t hi, float other) {
  if (key >= lo && key + 16 <= hi) return x;
  const auto bound = [&](int64_t limit) {
    const int64_t lane = limit - key;
    return splat_int(static_cast<int32_t>(lane < 0 ? 0 : lane > 16 ? 16 : lane));
  };
  const I16x lanes = lane_indices();
  x = select(less(lanes, bound(hi)), x, splat(other));
  return select(less(lanes, bound(lo)), splat(other), x);
}

HEADRACE_INLINE const std::byte* panel_of(const Q8AttentionTile& a, int64_t key) {
  const auto id = static_cast<size_t>(a.block_table[key / a.block_tokens]);
  return a.pages + id * a.block_stride_bytes +
         static_cast<size_t>(key % a.block_tokens / 16 * a.panel_bytes);
}

/// Looks up the panels with keys in [lo, hi), within the 64 keys from `begin`. Of keys outside,
/// which may be stale, all scales become harmless numbers.
HEADRACE_INLINE void open_block(const Q8AttentionTile& a, int64_t begin, int64_t lo, int64_t hi,
                                Q8Block& block) {
  for (int64_t i = 0; i < kQ8Panels; ++i) {
    const int64_t key = begin + 16 * i;
    block.panels[i] = nullptr;
    if (key + 16 <= lo || key >= hi) continue;
    const std::byte* panel = panel_of(a, key);
    block.panels[i] = panel;
    const auto* scales = reinterpret_cast<const uint16_t*>(panel + a.shape.key_scales);
    for (int64_t c = 0; c < a.shape.chunks; ++c) {
      store(block.key_scales + c * kQ8BlockKeys + 16 * i,
            keep_visible(load(scales + 16 * c), key, lo, hi, 0.0F));
    }
    const auto* logs = reinterpret_cast<const uint16_t*>(panel + a.shape.value_scales);
    const F16x log = keep_visible(load(logs), key, lo, hi, 0.0F);
    store(block.value_logs + 16 * i, log);
    store(block.value_inverses + 16 * i, exp2(splat(0.0F) - log));
  }
}

/// One row and a block of keys.
struct Q8Row {
  int64_t row;              ///< of the tile
  const int32_t* products;  ///< [chunks][64]
  int16_t* weights;         ///< [64]: written
  float* largest;           ///< written: the largest score, less log2(32000)
  float* lane_sums;         ///< [16], written: sums of weights
};

/// From products to weights, for the panels [first, last). kAll: that is all of them, and the row
/// sees all their keys.
template <bool kAll>
HEADRACE_INLINE void finish_q8_row(const Q8AttentionTile& a, const Q8Block& block, int64_t begin,
                                   int64_t first, int64_t last, const Q8Row& r) {
  const float* factors = a.queries.factors + r.row * a.shape.chunks;
  F16x u[kQ8Panels];
  F16x largest = splat(kNoQ8Score);
#pragma GCC unroll 4
  for (int64_t i = 0; i < kQ8Panels; ++i) {
    u[i] = splat(kNoQ8Score);
    if (!kAll && (i < first || i >= last)) continue;
    const F16x log = load(block.value_logs + 16 * i);
    u[i] = a.soft_cap == 0.0F ? log : splat(0.0F);
    for (int64_t c = 0; c < a.shape.chunks; ++c) {
      const int64_t at = c * kQ8BlockKeys + 16 * i;
      const F16x part = to_floats(load_int(r.products + at)) * splat(factors[c]);
      u[i] = mul_add(part, load(block.key_scales + at), u[i]);
    }
    if (a.soft_cap != 0.0F) {
      const F16x cap = splat(a.soft_cap * 1.44269504088896341F);
      u[i] = mul_add(cap, tanh(u[i] / cap), log);
    }
    if (!kAll) u[i] = keep_visible(u[i], begin + 16 * i, a.lo[r.row], a.hi[r.row], kNoQ8Score);
    largest = max(u[i], largest);
  }
  largest = splat_max(largest) - splat(kLog2OfLargestWeight);
  F16x sum = splat(0.0F);
#pragma GCC unroll 4
  for (int64_t i = 0; i < kQ8Panels; ++i) {
    if (!kAll && (i < first || i >= last)) {
      u[i] = splat(0.0F);
      continue;
    }
    u[i] = exp2_short(u[i] - largest);
    F16x inverse = load(block.value_inverses + 16 * i);
    // Even a weight of zero would not keep out what is not a number.
    if (!kAll) inverse = keep_visible(inverse, begin + 16 * i, a.lo[r.row], a.hi[r.row], 0.0F);
    sum = mul_add(u[i], inverse, sum);
  }
  round_weights(u, r.weights);
  store(r.lane_sums, sum);
  store_part(r.largest, largest, 1);
}

/// The rows [row, row + num_rows) of the tile, at most kQ8GroupRows, and one block of keys.
template <class Products>
HEADRACE_INLINE void attend_q8_group(const Q8AttentionTile& a, const Q8Scratch& s, int64_t begin,
                                     int64_t row, int64_t num_rows) {
  int64_t lo = a.lo[row];
  int64_t hi = a.hi[row];
  for (int64_t r = row + 1; r < row + num_rows; ++r) {
    lo = a.lo[r] < lo ? a.lo[r] : lo;
    hi = a.hi[r] > hi ? a.hi[r] : hi;
  }
  lo = lo > begin ? lo - begin : 0;
  hi = (hi < a.end ? hi : a.end) - begin;
  if (hi > kQ8BlockKeys) hi = kQ8BlockKeys;
  if (lo >= hi) return;
  const int64_t first = lo / 16;
  const int64_t last = (hi + 15) / 16;
  const int64_t chunks = a.shape.chunks;

  ScoreProduct product;
  for (int64_t i = first; i < last; ++i) {
    product.panels[i] = s.block.panels[i];
  }
  product.first = first;
  product.last = last;
  product.key_bytes = a.shape.key_bytes;
  product.codes = a.queries.codes + row * a.shape.dim;
  product.num_rows = num_rows;
  product.dim = a.shape.dim;
  product.chunks = chunks;
  product.out = s.products;
  Products::scores(product);

  const auto sees = [&](int64_t r) {
    return a.lo[row + r] < begin + hi && a.hi[row + r] > begin + lo;
  };
  for (int64_t r = 0; r < num_rows; ++r) {
    const Q8Row one{row + r, s.products + r * chunks * kQ8BlockKeys, s.weights + r * kQ8BlockKeys,
                    s.block_max + r, s.block_sums + 16 * r};
    if (!sees(r)) {
      std::memset(one.weights, 0, kQ8BlockKeys * sizeof(int16_t));
      s.block_max[r] = kNoQ8Score;
    } else if (a.lo[row + r] <= begin && a.hi[row + r] >= begin + kQ8BlockKeys &&
               begin + kQ8BlockKeys <= a.end) {
      finish_q8_row<true>(a, s.block, begin, first, last, one);
    } else {
      finish_q8_row<false>(a, s.block, begin, first, last, one);
    }
  }
  for (int64_t r = num_rows; r < kQ8GroupRows; ++r) s.block_max[r] = kNoQ8Score;
  const F16x block_max = load(s.block_max);
  const F16x old_max = load(a.max + row);
  const F16x new_max = max(old_max, block_max);
  store(s.old_factors, exp2(old_max - new_max));
  store(s.block_factors, exp2(block_max - new_max));
  store(a.max + row, new_max);

  ValueProduct values;
  for (int64_t i = first; i < last; ++i) {
    values.panels[i] = reinterpret_cast<const int8_t*>(s.block.panels[i] + a.shape.values);
  }
  values.first = first;
  values.last = last;
  values.weights = s.weights;
  values.num_rows = num_rows;
  values.dim = a.shape.dim;
  values.out = s.sums;
  Products::values(values);

  for (int64_t r = 0; r < num_rows; ++r) {
    if (!sees(r)) continue;
    const F16x old_factor = splat(s.old_factors[r]);
    const F16x block_factor = splat(s.block_factors[r]);
    float* lane_sums = s.lane_sums + 16 * (row + r);
    store(lane_sums,
          mul_add(load(s.block_sums + 16 * r), block_factor, load(lane_sums) * old_factor));
    float* out = a.out + (row + r) * a.shape.dim;
    const int32_t* sums = s.sums + r * a.shape.dim;
    for (int64_t d = 0; d < a.shape.dim; d += 16) {
      store(out + d,
            mul_add(to_floats(load_int(sums + d)), block_factor, load(out + d) * old_factor));
    }
  }
}

template <class Products>
void attend_q8(const Q8AttentionTile& a) {
  Q8Scratch scratch(a);
  int64_t lo = a.lo[0];
  int64_t hi = a.hi[0];
  for (int64_t r = 1; r < a.num_rows; ++r) {
    lo = a.lo[r] < lo ? a.lo[r] : lo;
    hi = a.hi[r] > hi ? a.hi[r] : hi;
  }
  hi = hi < a.end ? hi : a.end;
  for (int64_t r = 0; r < a.num_rows; r += 16) store(a.max + r, splat(kNoQ8Score));
  for (int64_t i = 0; i < a.num_rows * a.shape.dim; i += 16) store(a.out + i, splat(0.0F));
  for (int64_t i = 0; i < a.num_rows * 16; i += 16) store(scratch.lane_sums + i, splat(0.0F));
  for (int64_t begin = a.begin; begin < a.end && begin < hi; begin += kQ8BlockKeys) {
    if (begin + kQ8BlockKeys <= lo) continue;
    open_block(a, begin, lo, hi, scratch.block);
    const int64_t next = begin + kQ8BlockKeys;
    for (int64_t key = next; key < next + kQ8BlockKeys && key < hi; key += 16) {
      prefetch(panel_of(a, key), a.panel_bytes);
    }
    for (int64_t row = 0; row < a.num_rows; row += kQ8GroupRows) {
      const int64_t left = a.num_rows - row;
      attend_q8_group<Products>(a, scratch, begin, row, left < kQ8GroupRows ? left : kQ8GroupRows);
    }
  }
  for (int64_t r = 0; r < a.num_rows; ++r) {
    a.sum[r] = reduce_add(load(scratch.lane_sums + 16 * r));
    a.max[r] = a.max[r] * 0.69314718056F;  // in natural units, as attend_merge wants it
  }
}

}  // namespace
}  // namespace headrace
