// How well levels low..high times a scale can be fitted to some weights: the search that the
// symmetric formats share. Own method: for several guesses of the level that the largest weight
// gets, round, then take the scale of least squared error for these levels in closed form.
#pragma once

#include <cmath>
#include <span>

#include "quant/lanes.h"

namespace headrace {

/// Weights `x` of importance `w`, [n] each; n is a multiple of four.
struct WeightRun {
  const float* x;
  const float* w;
  int n;
};

/// Levels are integers from `low` to `high`.
struct LevelRange {
  float low;
  float high;
};

/// Below this magnitude a binary16 scale is zero.
static constexpr float kSmallestScale = 0x1.0p-25f;

/// The element of largest magnitude, with its sign.
static inline float largest_of(const WeightRun& run) {
  float largest = 0;
  for (int i = 0; i < run.n; ++i) {
    if (std::fabs(run.x[i]) > std::fabs(largest)) largest = run.x[i];
  }
  return largest;
}

/// The sums that decide on the scale for levels round(x * inverse): sum w x q and sum w q q.
struct LevelSums {
  float xq = 0;
  float qq = 0;

  /// By how much the best scale for these levels lowers the squared error of all zeros.
  float gain() const { return qq > 0 ? xq / qq * xq : 0.0f; }
};

static inline LevelSums level_sums(const WeightRun& run, float inverse, LevelRange range) {
  Lanes xq = {};
  Lanes qq = {};
  for (int i = 0; i < run.n; i += kNumLanes) {
    const Lanes x = load_lanes(run.x + i);
    const Lanes q = round_lanes(x * all_lanes(inverse), range.low, range.high);
    const Lanes wq = load_lanes(run.w + i) * q;
    xq += wq * x;
    qq += wq * q;
  }
  return {sum_lanes(xq), sum_lanes(qq)};
}

/// sum w (x - scale * q)^2 for the nearest levels of this very scale.
static inline float scale_error(const WeightRun& run, float scale, LevelRange range) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  Lanes error = {};
  for (int i = 0; i < run.n; i += kNumLanes) {
    const Lanes x = load_lanes(run.x + i);
    const Lanes q = round_lanes(x * all_lanes(inverse), range.low, range.high);
    const Lanes off = x - all_lanes(scale) * q;
    error += load_lanes(run.w + i) * off * off;
  }
  return sum_lanes(error);
}

/// The best scale found, 0 where all weights are next to nothing. `tops`: what level the weight of
/// largest magnitude is tried at, not rounded; negative ones give scales of the other sign.
static inline float fit_scale(const WeightRun& run, LevelRange range, std::span<const float> tops) {
  const float largest = largest_of(run);
  if (std::fabs(largest) < kSmallestScale) return 0;
  float scale = 0;
  float gain = 0;
  const auto try_inverse = [&](float inverse) {
    const LevelSums sums = level_sums(run, inverse, range);
    const float found = sums.gain();
    if (!(found > gain)) return false;
    gain = found;
    scale = sums.xq / sums.qq;
    return true;
  };
  for (const float top : tops) try_inverse(top / largest);
  // The best scale may round some weights to other levels, which have a better one again.
  for (int round = 0; round < 4 && scale != 0; ++round) {
    if (!try_inverse(1 / scale)) break;
  }
  return scale;
}

}  // namespace headrace
