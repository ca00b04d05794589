// The search for the integers and factors of the K formats: 256 weights in groups whose scales, and
// mins, are small integers times a binary16 factor. Own method: each group is fitted by itself,
// scales and mins are rounded, then factors (closed form, least squared error) and integers (their
// neighbours) are bettered in turn.
#pragma once

#include <array>

#include "quant/encoders.h"
#include "quant/fit_range.h"

namespace headrace {

inline constexpr int kKBlock = 256;
inline constexpr int kMostGroups = 16;
using InputK = BlockInput<kKBlock>;

/// How a format splits a block and what its integers reach.
struct KShape {
  int num_groups;
  float high;      ///< levels: 0..high, or low..high
  int most_scale;  ///< and min
  float low = 0;

  int group_size() const { return kKBlock / num_groups; }
  LevelRange range() const { return {low, high}; }
};

/// Integers and factors of a block's groups, which are fitted with a scale and a min.
struct KRanges {
  uint16_t d = 0;
  uint16_t dmin = 0;
  std::array<int, kMostGroups> scales = {};  ///< 0 .. most_scale
  std::array<int, kMostGroups> mins = {};

  RangeFit fit(int group) const {
    const auto index = static_cast<size_t>(group);
    return {f16_to_f32(d) * static_cast<float>(scales[index]),
            -(f16_to_f32(dmin) * static_cast<float>(mins[index]))};
  }
  void take_group(const KRanges& from, size_t group) {
    scales[group] = from.scales[group];
    mins[group] = from.mins[group];
  }
};

/// The same with a signed scale a group.
struct KScales {
  uint16_t d = 0;
  std::array<int, kMostGroups> scales = {};  ///< -most_scale - 1 .. most_scale

  RangeFit fit(int group) const {
    return {f16_to_f32(d) * static_cast<float>(scales[static_cast<size_t>(group)]), 0};
  }
  void take_group(const KScales& from, size_t group) { scales[group] = from.scales[group]; }
};

/// The best integers and factors of a block so far, KRanges or KScales, with each group's error.
template <class Integers>
class KSearch {
 protected:
  KSearch(const InputK& input, const KShape& shape) : input_(input), shape_(shape) {}
  ~KSearch() = default;

  WeightRun run(int group) const {
    return input_.run(group * shape_.group_size(), shape_.group_size());
  }

  /// The squared error of a group with these.
  virtual float error_of(const Integers& integers, int group) const = 0;

  void set_errors() {
    error_ = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      errors_[static_cast<size_t>(group)] = error_of(best_, group);
    }
    add_errors();
  }
  void add_errors() {
    error_ = 0;
    for (size_t group = 0; group < static_cast<size_t>(shape_.num_groups); ++group) {
      error_ += errors_[group];
    }
  }

  /// Takes one group's integers, the others being those of best_; add_errors() is to follow.
  void keep_group_if_better(const Integers& trial, int group) {
    const auto index = static_cast<size_t>(group);
    const float error = error_of(trial, group);
    if (!(error < errors_[index])) return;
    errors_[index] = error;
    best_.take_group(trial, index);
  }

  /// Takes another choice for the whole block.
  void keep_if_better(const Integers& trial) {
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
  Integers best_;

 private:
  std::array<float, kMostGroups> errors_ = {};
  float error_ = 0;
};

/// For formats with a scale and a min a group.
class KRangeSearch final : KSearch<KRanges> {
 public:
  KRangeSearch(const InputK& input, const KShape& shape) : KSearch(input, shape) {}

  /// stretches: see RangeSearch.
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
  float error_of(const KRanges& ranges, int group) const override {
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
          keep_group_if_better(trial, group);
        }
      }
    }
    add_errors();
  }

  /// Factors of least squared error for the levels as they are: x is about d * a - dmin * b.
  void better_factors() {
    float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      const auto scale = static_cast<float>(best_.scales[static_cast<size_t>(group)]);
      const auto min = static_cast<float>(best_.mins[static_cast<size_t>(group)]);
      const GroupSums sums = group_sums(run(group), best_.fit(group));
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

  std::array<RangeFit, kMostGroups> fits_;
};

/// For formats with a signed scale a group.
class KScaleSearch final : KSearch<KScales> {
 public:
  KScaleSearch(const InputK& input, const KShape& shape) : KSearch(input, shape) {}

  /// tops: see fit_scale.
  KScales find(std::span<const float> tops) {
    std::array<float, kMostGroups> fits = {};
    float largest = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      const float scale = fit_scale(run(group), shape_.range(), tops);
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
    set_errors();
    better_factor();
    better_integers();
    better_factor();
    return best_;
  }

 private:
  float error_of(const KScales& scales, int group) const override {
    return scale_error(run(group), scales.fit(group).scale, shape_.range());
  }

  void better_integers() {
    for (int group = 0; group < shape_.num_groups; ++group) {
      const auto index = static_cast<size_t>(group);
      KScales trial = best_;
      const int scale = best_.scales[index];
      for (const int s : {scale - 1, scale + 1}) {
        if (s < -shape_.most_scale - 1 || s > shape_.most_scale) continue;
        trial.scales[index] = s;
        keep_group_if_better(trial, group);
      }
    }
    add_errors();
  }

  void better_factor() {
    float aa = 0;
    float xa = 0;
    for (int group = 0; group < shape_.num_groups; ++group) {
      const float fit = best_.fit(group).scale;
      const auto scale = static_cast<float>(best_.scales[static_cast<size_t>(group)]);
      if (fit == 0) continue;
      const LevelSums sums = level_sums(run(group), 1 / fit, shape_.range());
      aa += scale * scale * sums.qq;
      xa += scale * sums.xq;
    }
    if (!(aa > 0)) return;
    KScales trial = best_;
    trial.d = half_of(xa / aa);
    keep_if_better(trial);
  }
};

}  // namespace headrace
