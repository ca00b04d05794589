// The encoders of the K formats: k_search.h finds the integers, here they are laid out.
#include <array>
#include <cstring>

#include "quant/encoders.h"
#include "quant/k_scales.h"
#include "quant/k_search.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"

namespace headrace {
namespace {

/// Levels of a block, as integers from the least on.
struct KLevels {
  std::array<uint8_t, kKBlock> q;
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

template <class Integers>
KLevels levels_of(const InputK& input, const KShape& shape, const Integers& integers) {
  KLevels out;
  for (int group = 0; group < shape.num_groups; ++group) {
    const int first = group * shape.group_size();
    store_levels(input.run(first, shape.group_size()), integers.fit(group), shape.range(),
                 out.q.data() + first);
  }
  return out;
}

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
    const size_t first = b * kKBlock;
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
