// The JSON header of a safetensors file, read without a tree: records as they stand there.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/heap_budget.h"
#include "checkpoint/safetensors_file.h"
#include "headrace/result.h"

namespace headrace {

struct SafetensorsRecord {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;
  std::array<uint64_t, 2> offsets = {0, 0};  ///< begin and end, in the data
};

/// The longest name of a tensor, and the most dimensions.
inline constexpr size_t kSafetensorsLongestName = 1024;
inline constexpr size_t kSafetensorsMaxDims = 8;

/// Errors: those of read_safetensors that the header alone shows; each names the tensor.
Result<std::vector<SafetensorsRecord>> read_safetensors_header(std::string_view json,
                                                               HeapBudget& budget);

}  // namespace headrace
