// "model.safetensors.index.json": which file holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// Files of a set, and tensors.
inline constexpr size_t kMaxShards = 4096;
inline constexpr size_t kMaxIndexBytes = size_t{64} << 20;

/// Tensor name to file name. Errors: corrupt_data where the text is no such index.
Result<std::map<std::string, std::string, std::less<>>> read_shard_index(std::string_view json);

}  // namespace headrace
