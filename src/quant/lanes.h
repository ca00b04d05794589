// Four floats at a time, in plain C++: what encoders compute with. Sums are taken in a fixed order,
// so that a block is the same on every machine.
#pragma once

#include <cstring>

namespace headrace {

using Lanes = float __attribute__((vector_size(16)));
static constexpr int kNumLanes = 4;

static inline Lanes load_lanes(const float* from) {
  Lanes out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

static inline void store_lanes(float* to, Lanes lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

static inline Lanes all_lanes(float value) {
  return Lanes{value, value, value, value};
}

static inline float sum_lanes(Lanes lanes) {
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/// To the nearest integer, ties to even, between `low` and `high`. Exact below 2^22 in magnitude;
/// what is larger is cut anyway.
static inline Lanes round_lanes(Lanes value, float low, float high) {
  // 1.5 * 2^23: its unit in the last place is 1, so that the addition rounds.
  const Lanes magic = all_lanes(12582912.0f);
  const Lanes rounded = (value + magic) - magic;
  const Lanes least = all_lanes(low);
  const Lanes most = all_lanes(high);
  const Lanes above = rounded > least ? rounded : least;
  return above < most ? above : most;
}

}  // namespace headrace
