// One encoder a format; encode.cc has the table. For each, see EncodeBlocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "quant/fit_scale.h"
#include "quant/half_scale.h"

namespace headrace {

void encode_f32(const float* values, const float* importance, std::byte* blocks, size_t num_blocks);
void encode_f16(const float* values, const float* importance, std::byte* blocks, size_t num_blocks);
void encode_bf16(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q8_0(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q4_0(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q4_1(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q5_0(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q5_1(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_iq4_nl(const float* values, const float* importance, std::byte* blocks,
                   size_t num_blocks);
void encode_q2_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q3_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q4_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q5_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);
void encode_q6_k(const float* values, const float* importance, std::byte* blocks,
                 size_t num_blocks);

/// A block's weights as encoders take them: finite, within the format's reach, with an importance
/// each whose mean is one.
template <int n>
struct BlockInput {
  alignas(16) float x[n];
  alignas(16) float w[n];

  BlockInput(const float* values, const float* importance, float max_magnitude) {
    for (int i = 0; i < n; ++i) {
      // NaN fails the comparison.
      const float value = values[i] == values[i] ? values[i] : 0.0f;
      x[i] = std::clamp(value, -max_magnitude, max_magnitude);
      w[i] = 1;
    }
    if (importance != nullptr) set_importance(importance);
  }

  void set_importance(const float* importance) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += static_cast<double>(importance[i]);
    if (!(sum > 0) || !std::isfinite(sum)) return;
    for (int i = 0; i < n; ++i) {
      w[i] = static_cast<float>(std::max(0.0, static_cast<double>(importance[i]) * n / sum));
    }
  }

  WeightRun run(int first, int count) const { return {x + first, w + first, count}; }
};

}  // namespace headrace
