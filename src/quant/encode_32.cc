// The encoders of the formats with one scale for 32 weights, and of plain numbers.
#include <array>
#include <cstring>
#include <limits>

#include "quant/encoders.h"
#include "quant/fit_range.h"
#include "quant/half_scale.h"
#include "quant/iq4_nl.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q8_0.h"

namespace headrace {
namespace {

constexpr int kRun = 32;
using Input32 = BlockInput<kRun>;

/// Levels as small integers, [32].
struct Levels {
  alignas(16) float q[kRun];

  int at(int i) const { return static_cast<int>(q[i]); }
};

Levels levels_of(const WeightRun& run, const RangeFit& fit, LevelRange range) {
  const float inverse = fit.scale != 0 ? 1 / fit.scale : 0;
  Levels out;
  for (int i = 0; i < run.n; i += kNumLanes) {
    const Lanes x = load_lanes(run.x + i) - all_lanes(fit.offset);
    store_lanes(out.q + i, round_lanes(x * all_lanes(inverse), range.low, range.high));
  }
  return out;
}

/// Of `candidates` and their upper neighbours, the binary16 scale of least error. A neighbour
/// counts where scales are so small that binary16 is coarse.
uint16_t best_half(const WeightRun& run, LevelRange range, std::span<const float> candidates) {
  uint16_t best = 0;
  float least = scale_error(run, 0, range);
  const auto consider = [&](uint16_t half) {
    const float error = scale_error(run, f16_to_f32(half), range);
    if (!(error < least)) return;
    least = error;
    best = half;
  };
  for (const float scale : candidates) {
    const uint16_t half = half_of(scale);
    consider(half);
    if (std::fabs(scale) < kSmallestFullHalf) consider(next_half(half));
  }
  return best;
}

void pack_nibbles(const Levels& levels, int bias, uint8_t* qs) {
  for (int i = 0; i < 16; ++i) {
    const int low = levels.at(i) + bias;
    const int high = levels.at(i + 16) + bias;
    qs[i] = static_cast<uint8_t>((low & 0x0f) | (high & 0x0f) << 4);
  }
}

void pack_fifth_bits(const Levels& levels, int bias, uint8_t* qh) {
  std::memset(qh, 0, 4);
  for (int i = 0; i < kRun; ++i) {
    const int bit = ((levels.at(i) + bias) >> 4) & 1;
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | bit << (i % 8));
  }
}

constexpr LevelRange kLevels4 = {-8, 7};
constexpr LevelRange kLevels5 = {-16, 15};
constexpr LevelRange kLevels8 = {-127, 127};

// All whole levels that a block's largest weight is likely to have, so that blocks that were
// encoded before are found again exactly; and, where levels are few, halves between.
constexpr auto kTops4 =
    std::to_array<float>({-8, -7.5f, -7, -6.5f, -6, -5.5f, -5, -4, 7, 6.5f, 6, 5.5f, 5, 4});
constexpr auto kTops5 = std::to_array<float>(
    {-16, -15.5f, -15, -14.5f, -14, -13.5f, -13, -12, 15, 14.5f, 14, 13.5f, 13, 12});
constexpr auto kTops8 = std::to_array<float>({127, 126, 125, 124, 123, 122, 121, 120});

/// Scale and levels of a block with levels from `range`; never worse than the largest weight at the
/// lowest level.
std::pair<uint16_t, Levels> encode_symmetric(const Input32& input, LevelRange range,
                                             std::span<const float> tops) {
  const WeightRun run = input.run(0, kRun);
  const float candidates[] = {fit_scale(run, range, tops), largest_of(run) / range.low};
  const uint16_t d = best_half(run, range, candidates);
  return {d, levels_of(run, {f16_to_f32(d), 0}, range)};
}

/// Scale, never negative, and levels of a block of Q8_0. Its largest weight has one of the levels
/// that kTops8 has, so that encoding again finds the same.
std::pair<uint16_t, Levels> encode_q8(const Input32& input) {
  auto [d, levels] = encode_symmetric(input, kLevels8, kTops8);
  const WeightRun run = input.run(0, kRun);
  const auto most = *std::max_element(levels.q, levels.q + kRun,
                                      [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  if (std::fabs(most) < kTops8.back()) {
    d = half_reaching(largest_of(run) / kTops8.front());
  }
  d &= 0x7fff;
  return {d, levels_of(run, {f16_to_f32(d), 0}, kLevels8)};
}

constexpr auto kStretches = std::to_array<float>({-0.5f, 0, 0.5f, 1, 1.5f, 2});

struct RangeHalves {
  uint16_t d = 0;
  uint16_t m = 0;

  RangeFit fit() const { return {f16_to_f32(d), f16_to_f32(m)}; }
};

/// Scale, offset and levels 0..high; never worse than the range from least to largest weight.
std::pair<RangeHalves, Levels> encode_range(const Input32& input, float high) {
  const WeightRun run = input.run(0, kRun);
  const auto [least, most] = std::minmax_element(input.x, input.x + kRun);
  RangeHalves best;
  float error = std::numeric_limits<float>::infinity();
  for (const RangeFit& fit : {RangeFit{(*most - *least) / high, *least},
                              RangeSearch(run, high, OffsetSign::any).find(kStretches)}) {
    for (const uint16_t d : {half_of(fit.scale), half_reaching(fit.scale)}) {
      const RangeHalves trial = {d, half_of(fit.offset)};
      const float found = range_error(run, trial.fit(), high);
      if (!(found < error)) continue;
      error = found;
      best = trial;
    }
  }
  return {best, levels_of(run, best.fit(), {0, high})};
}

/// Calls encode_block(input, block) for each block.
template <class Block, class EncodeBlock>
void encode_each(const float* values, const float* importance, std::byte* blocks, size_t num_blocks,
                 float max_magnitude, EncodeBlock encode_block) {
  auto* block = reinterpret_cast<Block*>(blocks);
  for (size_t b = 0; b < num_blocks; ++b) {
    const size_t first = b * kRun;
    const Input32 input(values + first, importance != nullptr ? importance + first : nullptr,
                        max_magnitude);
    encode_block(input, block[b]);
  }
}

/// The levels of IQ4_NL nearest to four values, and their indices.
struct Iq4Lanes {
  Lanes level;
  Lanes index;
};

Iq4Lanes nearest_iq4(Lanes value) {
  Iq4Lanes out = {all_lanes(kIq4Values[0]), all_lanes(0)};
  for (int i = 1; i < 16; ++i) {
    const auto below = static_cast<float>(kIq4Values[i - 1]);
    const auto above = static_cast<float>(kIq4Values[i]);
    const auto reached = value >= all_lanes(0.5f * (below + above));
    out.level = reached ? all_lanes(above) : out.level;
    out.index = reached ? all_lanes(static_cast<float>(i)) : out.index;
  }
  return out;
}

struct Iq4Fit {
  float scale = 0;
  float error = 0;
};

/// The best scale for the levels that `scale` gives, and the error of `scale` itself.
Iq4Fit refit_iq4(const Input32& input, float scale) {
  const float inverse = scale != 0 ? 1 / scale : 0;
  Lanes xq = {};
  Lanes qq = {};
  Lanes error = {};
  for (int i = 0; i < kRun; i += kNumLanes) {
    const Lanes x = load_lanes(input.x + i);
    const Lanes w = load_lanes(input.w + i);
    const Lanes q = nearest_iq4(x * all_lanes(inverse)).level;
    const Lanes off = x - all_lanes(scale) * q;
    xq += w * x * q;
    qq += w * q * q;
    error += w * off * off;
  }
  return {sum_lanes(xq) / std::max(sum_lanes(qq), 1e-30f), sum_lanes(error)};
}

uint16_t fit_iq4(const Input32& input) {
  const float largest = largest_of(input.run(0, kRun));
  if (std::fabs(largest) < kSmallestScale) return 0;
  uint16_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (const float top : {-127.0f, -115.0f, -104.0f, 113.0f, 102.0f}) {
    float scale = largest / top;
    for (int round = 0; round < 2; ++round) {
      const uint16_t half = half_reaching(scale);
      const Iq4Fit fit = refit_iq4(input, f16_to_f32(half));
      if (fit.error < least) {
        least = fit.error;
        best = half;
      }
      scale = fit.scale;
    }
  }
  return best;
}

}  // namespace

void encode_f32(const float* values, const float*, std::byte* blocks, size_t num_blocks) {
  for (size_t i = 0; i < num_blocks; ++i) {
    constexpr float kMost = std::numeric_limits<float>::max();
    const float number = values[i] == values[i] ? values[i] : 0.0f;
    const float value = std::clamp(number, -kMost, kMost);
    std::memcpy(blocks + i * sizeof value, &value, sizeof value);
  }
}

void encode_f16(const float* values, const float*, std::byte* blocks, size_t num_blocks) {
  for (size_t i = 0; i < num_blocks; ++i) {
    const uint16_t half = half_of(values[i] == values[i] ? values[i] : 0.0f);
    std::memcpy(blocks + i * sizeof half, &half, sizeof half);
  }
}

void encode_bf16(const float* values, const float*, std::byte* blocks, size_t num_blocks) {
  constexpr float kMost = 0x1.fep127f;
  for (size_t i = 0; i < num_blocks; ++i) {
    const float value = values[i] == values[i] ? values[i] : 0.0f;
    const uint16_t half = f32_to_bf16(std::clamp(value, -kMost, kMost));
    std::memcpy(blocks + i * sizeof half, &half, sizeof half);
  }
}

void encode_q8_0(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each<BlockQ8_0>(values, importance, blocks, num_blocks, kMaxHalf * 127,
                         [](const Input32& input, BlockQ8_0& block) {
                           const auto [d, levels] = encode_q8(input);
                           block.d = d;
                           for (int i = 0; i < kRun; ++i) {
                             block.qs[i] = static_cast<int8_t>(levels.q[i]);
                           }
                         });
}

void encode_q4_0(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each<BlockQ4_0>(values, importance, blocks, num_blocks, kMaxHalf * 7,
                         [](const Input32& input, BlockQ4_0& block) {
                           const auto [d, levels] = encode_symmetric(input, kLevels4, kTops4);
                           block.d = d;
                           pack_nibbles(levels, 8, block.qs);
                         });
}

void encode_q5_0(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each<BlockQ5_0>(values, importance, blocks, num_blocks, kMaxHalf * 15,
                         [](const Input32& input, BlockQ5_0& block) {
                           const auto [d, levels] = encode_symmetric(input, kLevels5, kTops5);
                           block.d = d;
                           pack_nibbles(levels, 16, block.qs);
                           pack_fifth_bits(levels, 16, block.qh);
                         });
}

void encode_q4_1(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each<BlockQ4_1>(values, importance, blocks, num_blocks, kMaxHalf,
                         [](const Input32& input, BlockQ4_1& block) {
                           const auto [halves, levels] = encode_range(input, 15);
                           block.d = halves.d;
                           block.m = halves.m;
                           pack_nibbles(levels, 0, block.qs);
                         });
}

void encode_q5_1(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks) {
  encode_each<BlockQ5_1>(values, importance, blocks, num_blocks, kMaxHalf,
                         [](const Input32& input, BlockQ5_1& block) {
                           const auto [halves, levels] = encode_range(input, 31);
                           block.d = halves.d;
                           block.m = halves.m;
                           pack_nibbles(levels, 0, block.qs);
                           pack_fifth_bits(levels, 0, block.qh);
                         });
}

void encode_iq4_nl(const float* values, const float* importance, std::byte* blocks,
                   size_t num_blocks) {
  encode_each<BlockIQ4_NL>(values, importance, blocks, num_blocks, kMaxHalf * 113,
                           [](const Input32& input, BlockIQ4_NL& block) {
                             block.d = fit_iq4(input);
                             const float inverse = block.d != 0 ? 1 / f16_to_f32(block.d) : 0;
                             Levels levels;
                             for (int i = 0; i < kRun; i += kNumLanes) {
                               const Lanes value = load_lanes(input.x + i) * all_lanes(inverse);
                               store_lanes(levels.q + i, nearest_iq4(value).index);
                             }
                             pack_nibbles(levels, 0, block.qs);
                           });
}

}  // namespace headrace
