// Checked reading of packed tensors. Internal to this folder.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "quant/packed/packed_weights.h"

namespace headrace::packed {

std::string_view type_name(PackedType type);
std::string shape_text(std::span<const int64_t> shape);

/// Of a tensor that is not as it should be.
Error wrong(const PackedTensor& tensor, const std::string& message);

/// Its elements are of one of these types, its dimensions not negative, and its data as large as
/// they say.
Result<void> check_tensor(const PackedTensor& tensor, std::initializer_list<PackedType> types);

/// check_tensor, and the shape.
Result<void> check_shape(const PackedTensor& tensor, std::initializer_list<PackedType> types,
                         std::span<const int64_t> shape);

/// All elements of a tensor of f16, bf16 or f32 as floats. Error: one is no number or infinite.
Result<std::vector<float>> read_floats(const PackedTensor& tensor);

/// All elements of a tensor of i32 or i64.
std::vector<int64_t> read_ints(const PackedTensor& tensor);

/// Element `index` of a tensor of i32, whose bytes need no alignment.
inline uint32_t word_at(const PackedTensor& tensor, int64_t index) {
  uint32_t word;
  std::memcpy(&word, tensor.data.data() + static_cast<size_t>(index) * sizeof word, sizeof word);
  return word;
}

/// Whether bits are 2, 4 or 8 and so divide a word.
Result<void> check_bits(const PackedTensor& tensor, int bits, std::initializer_list<int> known);

}  // namespace headrace::packed
