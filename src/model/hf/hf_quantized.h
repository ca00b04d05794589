// Modules whose weights a Hugging Face checkpoint keeps in several tensors: integers or 8-bit
// floats, scales, zero points. Must not know files or GGUF's names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/safetensors_file.h"
#include "headrace/result.h"
#include "model/hf/hf_quantization.h"
#include "quant/packed/packed_weights.h"

namespace headrace {

/// What a tensor is to its module.
enum class QuantPart : uint8_t {
  qweight,
  qzeros,
  scales,
  g_idx,
  weight_packed,
  weight_shape,
  weight_zero_point,
  weight_g_idx,
  weight_scale,
  weight,  ///< of I8 or F8_E4M3
  unused,  ///< scales for activations and for the KV cache, which this engine computes without
};

inline constexpr size_t kNumQuantParts = static_cast<size_t>(QuantPart::unused);

struct QuantPlace {
  std::string_view module;  ///< in the tensor's name
  QuantPart part = QuantPart::unused;
};

/// Nothing for tensors that are as in a checkpoint without quantisation.
std::optional<QuantPlace> place_quant_part(const StoredTensor& tensor);

/// A module's tensors by QuantPart; null where there is none.
using QuantizedModule = std::array<const StoredTensor*, kNumQuantParts>;

/// What unpack_quantized gives. Errors: those of plan_gptq and its kin (packed_weights.h);
/// corrupt_data (a tensor of the module is missing); mismatch (tensors of another method than the
/// config names).
Result<UnpackedPlan> plan_quantized(const HfQuantization& quantization,
                                    const QuantizedModule& module);
/// The weight, [output features, input features]. Throws std::bad_alloc.
Result<UnpackedMatrix> unpack_quantized(const HfQuantization& quantization,
                                        const QuantizedModule& module);

}  // namespace headrace
