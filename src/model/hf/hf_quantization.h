// What config.json says of how a model's weights were quantised. Must not know tensors.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/result.h"
#include "model/hf/hf_config.h"
#include "quant/packed/packed_weights.h"

namespace headrace {

/// The `quant_method` of a config.
enum class HfQuantMethod : uint8_t { none, gptq, awq, compressed_tensors, fp8 };

struct HfQuantization {
  HfQuantMethod method = HfQuantMethod::none;
  std::string name;         ///< for people: "gptq, 4 bits, groups of 128"; empty: none
  int bits = 4;             ///< gptq
  int64_t group_size = -1;  ///< columns; -1: all are one group, or the scales show it
  GptqZeros zeros_form = GptqZeros::minus_one;
  int64_t block_rows = 0;  ///< of scales a block of 8-bit floats; 0: none
  int64_t block_cols = 0;
};

/// Reads `quantization_config` (or `compression_config`, its older name). Which modules are
/// quantised is not read: their tensors show it. Errors name the key: unsupported (a method,
/// version or number of bits that is not built in), and those of HfConfig.
Result<HfQuantization> read_hf_quantization(const HfConfig& config);

}  // namespace headrace
