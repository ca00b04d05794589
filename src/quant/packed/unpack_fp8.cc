// E4M3 weights with scales. Source of the number format: "FP8 Formats for Deep Learning"
// (Micikevicius et al., 2022), and of block scales the DeepSeek-V3 checkpoints.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "quant/f8.h"
#include "quant/packed/packed_tensor.h"
#include "quant/packed/packed_weights.h"
#include "tensor/half.h"

namespace headrace {
namespace {

/// Which scale an element has.
struct ScalePlaces {
  std::vector<float> scales;
  int64_t block_rows = 0;
  int64_t block_cols = 0;
  int64_t across = 1;  ///< blocks in a row

  float at(int64_t row, int64_t col) const {
    return scales[static_cast<size_t>(row / block_rows * across + col / block_cols)];
  }
};

Result<ScalePlaces> scale_places(const ScaledFp8Module& module, int64_t rows, int64_t cols) {
  ScalePlaces out;
  const PackedTensor& scale = module.weight_scale;
  HEADRACE_ASSIGN(out.scales, packed::read_floats(scale));
  out.block_rows = rows;
  out.block_cols = cols;
  if (out.scales.size() == 1) return out;
  const auto is = [&](std::initializer_list<int64_t> shape) {
    return std::equal(shape.begin(), shape.end(), scale.shape.begin(), scale.shape.end());
  };
  if (module.block_rows > 0 && module.block_cols > 0) {
    out.block_rows = module.block_rows;
    out.block_cols = module.block_cols;
    out.across = (cols - 1) / out.block_cols + 1;
    const int64_t down = (rows - 1) / out.block_rows + 1;
    if (is({down, out.across})) return out;
    return packed::wrong(scale, "expected a scale a block of " + std::to_string(module.block_rows) +
                                    " x " + std::to_string(module.block_cols) + ", [" +
                                    std::to_string(down) + ", " + std::to_string(out.across) +
                                    "], found " + packed::shape_text(scale.shape));
  }
  out.block_rows = 1;
  if (is({rows}) || is({rows, 1})) return out;
  return packed::wrong(scale, "expected one scale, or [" + std::to_string(rows) + ", 1], found " +
                                  packed::shape_text(scale.shape));
}

std::array<float, 256> all_e4m3() {
  std::array<float, 256> out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = e4m3_to_f32(static_cast<uint8_t>(i));
  return out;
}

/// Checks the shapes.
Result<ScalePlaces> checked_places(const ScaledFp8Module& module) {
  const PackedTensor& weight = module.weight;
  HEADRACE_TRY(packed::check_tensor(weight, {PackedType::f8_e4m3}));
  if (weight.shape.size() != 2 || weight.data.empty()) {
    return packed::wrong(weight,
                         "expected a matrix, found shape " + packed::shape_text(weight.shape));
  }
  return scale_places(module, weight.shape[0], weight.shape[1]);
}

/// Below 2^-25 the spacing of F16's smallest numbers is wider than that of BF16's at 448 times the
/// scale.
Format format_of(const ScalePlaces& places) {
  constexpr float kLargestE4m3 = 448;
  float largest = 0;
  for (const float scale : places.scales) largest = std::max(largest, std::fabs(scale));
  const bool fits = largest * kLargestE4m3 <= 65504.0f && largest >= 0x1.0p-25f;
  return fits ? Format::f16 : Format::bf16;
}

}  // namespace

Result<UnpackedPlan> plan_scaled_fp8(const ScaledFp8Module& module) {
  HEADRACE_ASSIGN(const ScalePlaces places, checked_places(module));
  return UnpackedPlan{format_of(places), module.weight.shape[0], module.weight.shape[1]};
}

Result<UnpackedMatrix> unpack_scaled_fp8(const ScaledFp8Module& module) {
  const PackedTensor& weight = module.weight;
  HEADRACE_ASSIGN(const ScalePlaces places, checked_places(module));
  UnpackedMatrix out{format_of(places), weight.shape[0], weight.shape[1], {}};
  const std::array<float, 256> numbers = all_e4m3();
  out.bytes.resize(weight.data.size() * sizeof(uint16_t));
  for (int64_t row = 0; row < out.rows; ++row) {
    for (int64_t col = 0; col < out.cols; ++col) {
      const auto index = static_cast<size_t>(row * out.cols + col);
      const float value = numbers[static_cast<uint8_t>(weight.data[index])] * places.at(row, col);
      if (!std::isfinite(value)) {
        return packed::wrong(weight, "the weight in row " + std::to_string(row) + ", column " +
                                         std::to_string(col) + " is no finite number");
      }
      const uint16_t bits = out.format == Format::f16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(out.bytes.data() + index * sizeof bits, &bits, sizeof bits);
    }
  }
  return out;
}

}  // namespace headrace
