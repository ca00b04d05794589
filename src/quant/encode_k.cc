// The encoders of the K formats: 256 weights in groups whose scales, and mins, are small integers
// times a binary16 factor. Own method: each group is fitted by itself, scales and mins are rounded,
// then factors (closed form, least squared error) and integers (their neighbours) are bettered in
// turn.
#include <array>
#include <cstring>

#include "quant/encoders.h"
#include "quant/fit_range.h"
#include "quant/k_scales.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"

namespace headrace {
namespace {

constexpr int kBlock = 256;
using InputK = BlockInput<kBlock>;

/// How a format splits a block and what its integers reach.
struct KShape {
  int num_groups;
  float high;      ///< levels: 0..high, or low..high
  int most_scale;  ///< and min
  float low = 0;

  int group_size() const { return kBlock / num_groups; }
};

constexpr int kMostGroups = 16;

/// Levels of a block, as integers from the least on.
struct KLevels {
  std::array<uint8_t, kBlock> q;
};

/// The levels of a run, less `low`, written to `out`.
void store_levels(const WeightRun& run, const RangeFit& fit, LevelRange range, uint8_t* out) {
  const float inverse = fit.scale != 0 ? 1 / fit.scale : 0;
  for (int i = 0; i < run.n; i += kNumLanes) {
    const Lanes x = load_lanes(run.x + i) - all_lanes(fit.offset);
    const Lanes q = round_lanes(x * all_lanes(inverse), range.low, range.high);
    for (int lane = 0; lane < kNumLanes; ++lane) {
      out[i + lane] = static_cast<uint8_t>(q[lane] - range.low);
    }
  }
}

// Formats with a scale and a min a group
// -----------------------------------------------------------

struct KRanges {
  uint16_t d = 0;
  uint16_t dmin = 0;
  std::array<int, kMostGroups> scales = {};
  std::array<int, kMostGroups> mins = {};

  RangeFit fit(int group) const {
    const auto index = static_cast<size_t>(group);
    return {f16_to_f32(d) * static_cast<float>(scales[index]),
            -(f16_to_f32(dmin) * static_cast<float>(mins[index]))};
  }
};

/// The search for one block.
class KRangeSearch {
 public:
  KRangeSearch(const InputK& input, const KShape& shape) : input_(input), shape_(shape) {}

  KRanges find(std::span<const float> stretches) {
    for (int group = 0; group < shape_.num_groups; ++group) {
      fits_[static_cast<size_t>(group)] =
          RangeSearch(run(group), shape_.high, OffsetSign::not_positive).find(stretches);
    }
    float most_scale = 0;
    float most_min = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      most_scale = std::max(most_scale, fits_[static_cast<size_t>(group)].scale);
      most_min = std::max(most_min, -fits_[static_cast<size_t>(group)].offset);
    }
    const auto most = static_cast<float>(shape_.most_scale);
    best_.d = half_reaching(most_scale / most);
    best_.dmin = half_reaching(most_min / most);
    round_fits();
    set_errors();
    better_factors();
    better_integers();
    better_factors();
    return best_;
  }

 private:
  WeightRun run(int group) const {
    return input_.run(group * shape_.group_size(), shape_.group_size());
  }

  float error_of(const KRanges& ranges, int group) const {
    return range_error(run(group), ranges.fit(group), shape_.high);
  }

  int rounded(float value, uint16_t factor) const {
    const float unit = f16_to_f32(factor);
    if (unit == 0) return 0;
    return std::clamp(static_cast<int>(std::lround(value / unit)), 0, shape_.most_scale);
  }

  void round_fits() {
    for (size_t group = 0; group < static_cast<size_t>(shape_.num_groups); ++group) {
      best_.scales[group] = rounded(fits_[group].scale, best_.d);
      best_.mins[group] = rounded(-fits_[group].offset, best_.dmin);
    }
  }

  void set_errors() {
    error_ = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      errors_[static_cast<size_t>(group)] = error_of(best_, group);
      error_ += errors_[static_cast<size_t>(group)];
    }
  }

  /// Of the integers next to each group's, those of least error.
  void better_integers() {
    for (int group = 0; group < shape_.num_groups; ++group) {
      const auto index = static_cast<size_t>(group);
      const int scale = best_.scales[index];
      const int min = best_.mins[index];
      KRanges trial = best_;
      for (int s = std::max(0, scale - 1); s <= std::min(shape_.most_scale, scale + 1); ++s) {
        for (int m = std::max(0, min - 1); m <= std::min(shape_.most_scale, min + 1); ++m) {
          if (s == scale && m == min) continue;
          trial.scales[index] = s;
          trial.mins[index] = m;
          const float error = error_of(trial, group);
          if (!(error < errors_[index])) continue;
          errors_[index] = error;
          best_.scales[index] = s;
          best_.mins[index] = m;
        }
      }
    }
    error_ = 0;
    for (size_t group = 0; group < static_cast<size_t>(shape_.num_groups); ++group) {
      error_ += errors_[group];
    }
  }

  /// Factors of least squared error for the levels as they are: x is about d * a - dmin * b.
  void better_factors() {
    float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      const RangeFit fit = best_.fit(group);
      const auto scale = static_cast<float>(best_.scales[static_cast<size_t>(group)]);
      const auto min = static_cast<float>(best_.mins[static_cast<size_t>(group)]);
      const GroupSums sums = group_sums(run(group), fit);
      aa += scale * scale * sums.qq;
      ab -= scale * min * sums.q;
      bb += min * min * sums.w;
      xa += scale * sums.xq;
      xb -= min * sums.x;
    }
    KRanges trial = best_;
    const float determinant = aa * bb - ab * ab;
    if (determinant > 0) {
      trial.d = half_of(std::max(0.0f, (bb * xa - ab * xb) / determinant));
      trial.dmin = half_of(std::max(0.0f, (aa * xb - ab * xa) / determinant));
    } else if (aa > 0) {
      trial.d = half_of(std::max(0.0f, xa / aa));
    } else {
      return;
    }
    keep_if_better(trial);
  }

  struct GroupSums {
    float w = 0, x = 0, q = 0, qq = 0, xq = 0;
  };

  GroupSums group_sums(const WeightRun& run, const RangeFit& fit) const {
    const float inverse = fit.scale != 0 ? 1 / fit.scale : 0;
    Lanes w_sum = {}, x_sum = {}, q_sum = {}, qq = {}, xq = {};
    for (int i = 0; i < run.n; i += kNumLanes) {
      const Lanes w = load_lanes(run.w + i);
      const Lanes x = load_lanes(run.x + i);
      const Lanes level = (x - all_lanes(fit.offset)) * all_lanes(inverse);
      const Lanes q = round_lanes(level, 0, shape_.high);
      w_sum += w;
      x_sum += w * x;
      q_sum += w * q;
      qq += w * q * q;
      xq += w * q * x;
    }
    return {sum_lanes(w_sum), sum_lanes(x_sum), sum_lanes(q_sum), sum_lanes(qq), sum_lanes(xq)};
  }

  void keep_if_better(const KRanges& trial) {
    std::array<float, kMostGroups> errors = {};
    float sum = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      errors[static_cast<size_t>(group)] = error_of(trial, group);
      sum += errors[static_cast<size_t>(group)];
    }
    if (!(sum < error_)) return;
    best_ = trial;
    errors_ = errors;
    error_ = sum;
  }

  const InputK& input_;
  KShape shape_;
  std::array<RangeFit, kMostGroups> fits_;
  KRanges best_;
  std::array<float, kMostGroups> errors_ = {};
  float error_ = 0;
};

KLevels levels_of(const InputK& input, const KShape& shape, const KRanges& ranges) {
  KLevels out;
  for (int group = 0; group < shape.num_groups; ++group) {
    const int first = group * shape.group_size();
    store_levels(input.run(first, shape.group_size()), ranges.fit(group), {0, shape.high},
                 out.q.data() + first);
  }
  return out;
}

// Formats with a signed scale a group
// --------------------------------------------------------------

struct KScales {
  uint16_t d = 0;
  std::array<int, kMostGroups> scales = {};  ///< -most_scale - 1 .. most_scale

  float scale(int group) const {
    return f16_to_f32(d) * static_cast<float>(scales[static_cast<size_t>(group)]);
  }
};

class KScaleSearch {
 public:
  KScaleSearch(const InputK& input, const KShape& shape) : input_(input), shape_(shape) {}

  KScales find(std::span<const float> tops) {
    std::array<float, kMostGroups> fits = {};
    float largest = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      const float scale = fit_scale(run(group), range(), tops);
      fits[static_cast<size_t>(group)] = scale;
      if (std::fabs(scale) > std::fabs(largest)) largest = scale;
    }
    best_.d = half_reaching(largest / static_cast<float>(-shape_.most_scale - 1));
    if (best_.d % 0x8000 == 0) return best_;
    for (size_t group = 0; group < static_cast<size_t>(shape_.num_groups); ++group) {
      best_.scales[group] =
          std::clamp(static_cast<int>(std::lround(fits[group] / f16_to_f32(best_.d))),
                     -shape_.most_scale - 1, shape_.most_scale);
    }
    for (int group = 0; group < shape_.num_groups; ++group) {
      errors_[static_cast<size_t>(group)] = error_of(best_, group);
      error_ += errors_[static_cast<size_t>(group)];
    }
    better_factor();
    better_integers();
    better_factor();
    return best_;
  }

 private:
  WeightRun run(int group) const {
    return input_.run(group * shape_.group_size(), shape_.group_size());
  }
  LevelRange range() const { return {shape_.low, shape_.high}; }
  float error_of(const KScales& scales, int group) const {
    return scale_error(run(group), scales.scale(group), range());
  }

  void better_integers() {
    for (int group = 0; group < shape_.num_groups; ++group) {
      const auto index = static_cast<size_t>(group);
      KScales trial = best_;
      const int scale = best_.scales[index];
      for (const int s : {scale - 1, scale + 1}) {
        if (s < -shape_.most_scale - 1 || s > shape_.most_scale) continue;
        trial.scales[index] = s;
        const float error = error_of(trial, group);
        if (!(error < errors_[index])) continue;
        errors_[index] = error;
        best_.scales[index] = s;
      }
    }
    error_ = 0;
    for (size_t group = 0; group < static_cast<size_t>(shape_.num_groups); ++group) {
      error_ += errors_[group];
    }
  }

  void better_factor() {
    float aa = 0;
    float xa = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      const float fit = best_.scale(group);
      const auto scale = static_cast<float>(best_.scales[static_cast<size_t>(group)]);
      if (fit == 0) continue;
      const LevelSums sums = level_sums(run(group), 1 / fit, range());
      aa += scale * scale * sums.qq;
      xa += scale * sums.xq;
    }
    if (!(aa > 0)) return;
    KScales trial = best_;
    trial.d = half_of(xa / aa);
    std::array<float, kMostGroups> errors = {};
    float sum = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      errors[static_cast<size_t>(group)] = error_of(trial, group);
      sum += errors[static_cast<size_t>(group)];
    }
    if (!(sum < error_)) return;
    best_ = trial;
    errors_ = errors;
    error_ = sum;
  }

  const InputK& input_;
  KShape shape_;
  KScales best_;
  std::array<float, kMostGroups> errors_ = {};
  float error_ = 0;
};

KLevels levels_of(const InputK& input, const KShape& shape, const KScales& scales) {
  KLevels out;
  for (int group = 0; group < shape.num_groups; ++group) {
    const int first = group * shape.group_size();
    store_levels(input.run(first, shape.group_size()), {scales.scale(group), 0},
                 {shape.low, shape.high}, out.q.data() + first);
  }
  return out;
}

// Layouts
// ------------------------------------------------------------------------------------------

/// The other way of k_scale_min.
void pack_k_scales(const KRanges& ranges, uint8_t* packed) {
  std::memset(packed, 0, 12);
  const auto put = [&](int byte, int bits) {
    packed[byte] = static_cast<uint8_t>(packed[byte] | bits);
  };
  for (int group = 0; group < 8; ++group) {
    const int scale = ranges.scales[static_cast<size_t>(group)];
    const int min = ranges.mins[static_cast<size_t>(group)];
    if (group < 4) {
      put(group, scale);
      put(group + 4, min);
    } else {
      put(group + 4, (scale & 0x0f) | (min & 0x0f) << 4);
      put(group - 4, scale >> 4 << 6);
      put(group, min >> 4 << 6);
    }
  }
}

/// Low nibbles of 256 levels: weight i in byte i / 64 * 32 + i % 32, low nibble first.
void pack_k_nibbles(const KLevels& levels, uint8_t* qs) {
  for (size_t i = 0; i < 128; ++i) {
    const size_t first = i / 32 * 64 + i % 32;
    qs[i] = static_cast<uint8_t>((levels.q[first] & 0x0f) | (levels.q[first + 32] & 0x0f) << 4);
  }
}

/// Two bits of 256 levels from `shift` on: weight i in byte i / 128 * 32 + i % 32, bits
/// 2 * (i / 32 % 4) and up.
void pack_k_pairs(const KLevels& levels, int shift, uint8_t* qs) {
  for (size_t i = 0; i < 64; ++i) {
    const size_t first = i / 32 * 128 + i % 32;
    int byte = 0;
    for (size_t k = 0; k < 4; ++k) {
      byte |= ((levels.q[first + 32 * k] >> shift) & 3) << (2 * k);
    }
    qs[i] = static_cast<uint8_t>(byte);
  }
}

/// One bit of 256 levels: weight i in byte i % 32, bit i / 32.
void pack_k_bits(const KLevels& levels, int shift, uint8_t* bits) {
  for (size_t i = 0; i < 32; ++i) {
    int byte = 0;
    for (size_t k = 0; k < 8; ++k) byte |= ((levels.q[i + 32 * k] >> shift) & 1) << k;
    bits[i] = static_cast<uint8_t>(byte);
  }
}

/// The other way of q3_k_scale.
void pack_q3_k_scales(const KScales& scales, uint8_t* packed) {
  std::memset(packed, 0, 12);
  for (int group = 0; group < 16; ++group) {
    const int value = scales.scales[static_cast<size_t>(group)] + 32;
    uint8_t& low = packed[group % 8];
    uint8_t& high = packed[8 + group % 4];
    low = static_cast<uint8_t>(low | (value & 0x0f) << (group / 8 * 4));
    high = static_cast<uint8_t>(high | value >> 4 << (group / 4 * 2));
  }
}

constexpr KShape kShapeQ2 = {16, 3, 15};
constexpr KShape kShapeQ3 = {16, 3, 31, -4};
constexpr KShape kShapeQ4 = {8, 15, 63};
constexpr KShape kShapeQ5 = {8, 31, 63};
constexpr KShape kShapeQ6 = {16, 31, 127, -32};

constexpr auto kStretches2 = std::to_array<float>({-0.3f, 0.1f, 0.5f, 1});
constexpr auto kStretches4 = std::to_array<float>({0, 0.8f, 1.6f});
constexpr auto kStretches5 = std::to_array<float>({0, 0.8f});
constexpr auto kTops3 = std::to_array<float>(
    {-4.5f, -4.2f, -4, -3.7f, -3.4f, -3, -2.6f, 4, 3.5f, 3.2f, 3, 2.7f, 2.4f, 2});
constexpr auto kTops6 = std::to_array<float>({-32, -31.5f, -31, -30.5f, 31, 30.5f, 30});

template <class Block, class EncodeBlock>
void encode_each_k(const float* values, const float* importance, std::byte* blocks,
                   size_t num_blocks, float max_magnitude, EncodeBlock encode_block) {
  auto* block = reinterpret_cast<Block*>(blocks);
  for (size_t b = 0; b < num_blocks; ++b) {
    const size_t first = b * kBlock;
    const InputK input(values + first, importance != nullptr ? importance + first : nullptr,
                       max_magnitude);
    encode_block(input, block[b]);
  }
}

}  // namespace

void encode_q2_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each_k<BlockQ2_K>(values, importance, blocks, num_blocks, kMaxHalf * 15,
                           [](const InputK& input, BlockQ2_K& block) {
                             const KRanges ranges = KRangeSearch(input, kShapeQ2).find(kStretches2);
                             block.d = ranges.d;
                             block.dmin = ranges.dmin;
                             for (size_t group = 0; group < 16; ++group) {
                               block.scales[group] = static_cast<uint8_t>(ranges.scales[group] |
                                                                          ranges.mins[group] << 4);
                             }
                             pack_k_pairs(levels_of(input, kShapeQ2, ranges), 0, block.qs);
                           });
}

void encode_q3_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each_k<BlockQ3_K>(values, importance, blocks, num_blocks, kMaxHalf * 31 * 3,
                           [](const InputK& input, BlockQ3_K& block) {
                             const KScales scales = KScaleSearch(input, kShapeQ3).find(kTops3);
                             const KLevels levels = levels_of(input, kShapeQ3, scales);
                             block.d = scales.d;
                             pack_q3_k_scales(scales, block.scales);
                             pack_k_pairs(levels, 0, block.qs);
                             pack_k_bits(levels, 2, block.hmask);
                           });
}

void encode_q4_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each_k<BlockQ4_K>(values, importance, blocks, num_blocks, kMaxHalf * 63,
                           [](const InputK& input, BlockQ4_K& block) {
                             const KRanges ranges = KRangeSearch(input, kShapeQ4).find(kStretches4);
                             block.d = ranges.d;
                             block.dmin = ranges.dmin;
                             pack_k_scales(ranges, block.scales);
                             pack_k_nibbles(levels_of(input, kShapeQ4, ranges), block.qs);
                           });
}

void encode_q5_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each_k<BlockQ5_K>(values, importance, blocks, num_blocks, kMaxHalf * 63,
                           [](const InputK& input, BlockQ5_K& block) {
                             const KRanges ranges = KRangeSearch(input, kShapeQ5).find(kStretches5);
                             const KLevels levels = levels_of(input, kShapeQ5, ranges);
                             block.d = ranges.d;
                             block.dmin = ranges.dmin;
                             pack_k_scales(ranges, block.scales);
                             pack_k_nibbles(levels, block.qs);
                             pack_k_bits(levels, 4, block.qh);
                           });
}

void encode_q6_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each_k<BlockQ6_K>(values, importance, blocks, num_blocks, kMaxHalf * 127 * 31,
                           [](const InputK& input, BlockQ6_K& block) {
                             const KScales scales = KScaleSearch(input, kShapeQ6).find(kTops6);
                             const KLevels levels = levels_of(input, kShapeQ6, scales);
                             block.d = scales.d;
                             for (size_t group = 0; group < 16; ++group) {
                               block.scales[group] = static_cast<int8_t>(scales.scales[group]);
                             }
                             for (size_t i = 0; i < 128; ++i) {
                               const size_t first = i / 64 * 128 + i % 64;
                               block.ql[i] = static_cast<uint8_t>(
                                   (levels.q[first] & 0x0f) | (levels.q[first + 64] & 0x0f) << 4);
                             }
                             pack_k_pairs(levels, 4, block.qh);
                           });
}

}  // namespace headrace
