// How well scale * level + offset, levels 0..high, can be fitted to some weights: the search that
// the formats with a minimum share. Own method: for several guesses of the range, round, then take
// scale and offset of least squared error for these levels in closed form, and round again by them.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "quant/fit_scale.h"

namespace headrace {

/// weight = scale * level + offset.
struct RangeFit {
  float scale = 0;
  float offset = 0;
};

/// Whether offsets above zero can be kept.
enum class OffsetSign : uint8_t { any, not_positive };

/// Sums over a run moved by `base`: x stands for x - base.
struct RangeSums {
  float q = 0;
  float qq = 0;
  float xq = 0;
};

static inline RangeSums range_sums(const WeightRun& run, float base, float inverse, float shift,
                                   float high) {
  Lanes q_sum = {};
  Lanes qq = {};
  Lanes xq = {};
  for (int i = 0; i < run.n; i += kNumLanes) {
    const Lanes x = load_lanes(run.x + i) - all_lanes(base);
    const Lanes q = round_lanes(x * all_lanes(inverse) - all_lanes(shift), 0, high);
    const Lanes wq = load_lanes(run.w + i) * q;
    q_sum += wq;
    qq += wq * q;
    xq += wq * x;
  }
  return {sum_lanes(q_sum), sum_lanes(qq), sum_lanes(xq)};
}

/// sum w (x - scale * q - offset)^2 for the nearest levels of this very fit.
static inline float range_error(const WeightRun& run, const RangeFit& fit, float high) {
  const float inverse = fit.scale != 0 ? 1 / fit.scale : 0;
  Lanes error = {};
  for (int i = 0; i < run.n; i += kNumLanes) {
    const Lanes x = load_lanes(run.x + i) - all_lanes(fit.offset);
    const Lanes q = round_lanes(x * all_lanes(inverse), 0, high);
    const Lanes off = x - all_lanes(fit.scale) * q;
    error += load_lanes(run.w + i) * off * off;
  }
  return sum_lanes(error);
}

/// A search for scale and offset of one run.
class RangeSearch {
 public:
  RangeSearch(const WeightRun& run, float high, OffsetSign sign)
      : run_(run), high_(high), sign_(sign) {
    float least = run.x[0];
    float most = run.x[0];
    for (int i = 1; i < run.n; ++i) {
      least = std::min(least, run.x[i]);
      most = std::max(most, run.x[i]);
    }
    if (sign == OffsetSign::not_positive) least = std::min(least, 0.0f);
    base_ = least;
    span_ = most - least;
    best_.offset = least;
    Lanes w_sum = {};
    Lanes x_sum = {};
    Lanes xx = {};
    for (int i = 0; i < run.n; i += kNumLanes) {
      const Lanes w = load_lanes(run.w + i);
      const Lanes x = load_lanes(run.x + i) - all_lanes(base_);
      w_sum += w;
      x_sum += w * x;
      xx += w * x * x;
    }
    w_ = sum_lanes(w_sum);
    x_ = sum_lanes(x_sum);
    xx_ = sum_lanes(xx);
  }

  /// `stretches`: by how many levels the weights' range is tried wider than the levels reach; half
  /// of what is cut off is cut at either end.
  RangeFit find(std::span<const float> stretches) {
    if (span_ < kSmallestScale) return middle();
    for (const float stretch : stretches) {
      try_levels((high_ + stretch) / span_, stretch / 2);
      try_levels((high_ + stretch) / span_, 0);
    }
    for (int round = 0; round < 4 && best_.scale > 0; ++round) {
      const float inverse = 1 / best_.scale;
      if (!try_levels(inverse, (best_.offset - base_) * inverse)) break;
    }
    return best_;
  }

 private:
  /// All weights alike.
  RangeFit middle() const {
    const float mean = base_ + (w_ > 0 ? x_ / w_ : 0);
    return {0, sign_ == OffsetSign::any ? mean : std::min(mean, 0.0f)};
  }

  bool try_levels(float inverse, float shift) {
    const RangeSums sums = range_sums(run_, base_, inverse, shift, high_);
    if (!(sums.qq > 0)) return false;
    // Where all levels are the same, the offset stays at the least weight.
    float scale = sums.xq / sums.qq;
    float offset = 0;
    const float determinant = w_ * sums.qq - sums.q * sums.q;
    if (determinant > 1e-6f * w_ * sums.qq) {
      scale = (w_ * sums.xq - x_ * sums.q) / determinant;
      offset = (sums.qq * x_ - sums.q * sums.xq) / determinant;
    }
    if (sign_ == OffsetSign::not_positive && base_ + offset > 0) {
      offset = -base_;
      scale = (sums.xq - offset * sums.q) / sums.qq;
    }
    if (!(scale > 0)) return false;
    const float error = xx_ - 2 * scale * sums.xq - 2 * offset * x_ + scale * scale * sums.qq +
                        2 * scale * offset * sums.q + offset * offset * w_;
    if (!(error < error_)) return false;
    error_ = error;
    best_ = {scale, base_ + offset};
    return true;
  }

  const WeightRun& run_;
  float high_;
  OffsetSign sign_;
  float base_ = 0;
  float span_ = 0;
  float w_ = 0;
  float x_ = 0;
  float xx_ = 0;
  RangeFit best_;
  float error_ = std::numeric_limits<float>::infinity();
};

}  // namespace headrace
