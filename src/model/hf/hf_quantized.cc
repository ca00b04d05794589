// See hf_quantized.h.
#include "model/hf/hf_quantized.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

constexpr std::pair<std::string_view, QuantPart> kEndings[] = {
    {".qweight", QuantPart::qweight},
    {".qzeros", QuantPart::qzeros},
    {".scales", QuantPart::scales},
    {".g_idx", QuantPart::g_idx},
    {".weight_packed", QuantPart::weight_packed},
    {".weight_shape", QuantPart::weight_shape},
    {".weight_zero_point", QuantPart::weight_zero_point},
    {".weight_g_idx", QuantPart::weight_g_idx},
    {".weight_scale", QuantPart::weight_scale},
    {".weight_scale_inv", QuantPart::weight_scale},
    {".input_scale", QuantPart::unused},
    {".input_scale_ub", QuantPart::unused},
    {".input_zero_point", QuantPart::unused},
    {".output_scale", QuantPart::unused},
    {".output_zero_point", QuantPart::unused},
    {".activation_scale", QuantPart::unused},
    {".q_scale", QuantPart::unused},
    {".k_scale", QuantPart::unused},
    {".v_scale", QuantPart::unused},
    {".kv_scale", QuantPart::unused},
};

std::optional<PackedType> packed_type(StoredType type) {
  switch (type) {
    case StoredType::i8:
      return PackedType::i8;
    case StoredType::u8:
      return PackedType::u8;
    case StoredType::i32:
      return PackedType::i32;
    case StoredType::i64:
      return PackedType::i64;
    case StoredType::f8_e4m3:
      return PackedType::f8_e4m3;
    case StoredType::f16:
      return PackedType::f16;
    case StoredType::bf16:
      return PackedType::bf16;
    case StoredType::f32:
      return PackedType::f32;
    default:
      return std::nullopt;
  }
}

const StoredTensor* stored_part(const QuantizedModule& module, QuantPart part) {
  return module[static_cast<size_t>(part)];
}

std::string_view ending_of(QuantPart part) {
  if (part == QuantPart::weight) return ".weight";
  return std::ranges::find(kEndings, part, &std::pair<std::string_view, QuantPart>::second)->first;
}

/// The tensors of a module as packed_weights.h takes them. Keeps the first fault.
class Parts {
 public:
  explicit Parts(const QuantizedModule& module) : module_(module) {
    for (size_t i = 0; i < module.size(); ++i) {
      if (module[i] != nullptr) take(*module[i], tensors_[i]);
    }
  }

  bool has(QuantPart part) const { return stored_part(module_, part) != nullptr; }

  const PackedTensor& required(QuantPart part) {
    if (!has(part)) {
      fail({ErrorCode::corrupt_data,
            "the tensor is missing: " + std::string(ending_of(part).substr(1)) + " beside it",
            "tensor " + quote_name(any().name), "fetch the whole model"});
    }
    return tensors_[static_cast<size_t>(part)];
  }

  const PackedTensor* optional(QuantPart part) const {
    return has(part) ? &tensors_[static_cast<size_t>(part)] : nullptr;
  }

  const StoredTensor& any() const {
    return **std::ranges::find_if(module_, [](const auto* one) { return one != nullptr; });
  }

  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  std::optional<Error>& error() { return error_; }

 private:
  void take(const StoredTensor& stored, PackedTensor& out) {
    const auto type = packed_type(stored.type);
    if (!type) {
      return fail({ErrorCode::unsupported,
                   "has dtype " + std::string(stored_type_name(stored.type)) +
                       ", which no part of a quantised weight has",
                   "tensor " + quote_name(stored.name), ""});
    }
    out = {stored.name, *type, stored.shape, stored.data};
  }

  const QuantizedModule& module_;
  std::array<PackedTensor, kNumQuantParts> tensors_;
  std::optional<Error> error_;
};

GptqModule gptq_module(Parts& parts, const HfQuantization& quantization) {
  return {.bits = quantization.bits,
          .group_size = quantization.group_size,
          .zeros_form = quantization.zeros_form,
          .qweight = parts.required(QuantPart::qweight),
          .qzeros = parts.required(QuantPart::qzeros),
          .scales = parts.required(QuantPart::scales),
          .g_idx = parts.optional(QuantPart::g_idx)};
}

AwqModule awq_module(Parts& parts, const HfQuantization& quantization) {
  return {.group_size = quantization.group_size,
          .qweight = parts.required(QuantPart::qweight),
          .qzeros = parts.optional(QuantPart::qzeros),
          .scales = parts.required(QuantPart::scales)};
}

/// Of 4 and 8 bits, which words of the row there are shows which.
int pack_bits(const PackedTensor& packed, const PackedTensor& shape) {
  if (packed.shape.size() != 2 || shape.data.empty()) return 4;
  int64_t cols = 0;
  if (shape.type == PackedType::i64 && shape.data.size() == 2 * sizeof(int64_t)) {
    std::memcpy(&cols, shape.data.data() + sizeof(int64_t), sizeof(int64_t));
  } else if (shape.type == PackedType::i32 && shape.data.size() == 2 * sizeof(int32_t)) {
    int32_t narrow;
    std::memcpy(&narrow, shape.data.data() + sizeof(int32_t), sizeof(int32_t));
    cols = narrow;
  }
  return packed.shape[1] == (cols > 0 ? (cols - 1) / 4 + 1 : 0) && cols > 4 ? 8 : 4;
}

PackQuantizedModule pack_module(Parts& parts, const HfQuantization& quantization) {
  PackQuantizedModule out{.bits = 4,
                          .group_size = quantization.group_size,
                          .weight_packed = parts.required(QuantPart::weight_packed),
                          .weight_scale = parts.required(QuantPart::weight_scale),
                          .weight_shape = parts.required(QuantPart::weight_shape),
                          .weight_zero_point = parts.optional(QuantPart::weight_zero_point),
                          .weight_g_idx = parts.optional(QuantPart::weight_g_idx)};
  out.bits = pack_bits(out.weight_packed, out.weight_shape);
  return out;
}

ScaledIntModule int_module(Parts& parts) {
  return {.weight = parts.required(QuantPart::weight),
          .weight_scale = parts.required(QuantPart::weight_scale),
          .weight_zero_point = parts.optional(QuantPart::weight_zero_point)};
}

ScaledFp8Module fp8_module(Parts& parts, const HfQuantization& quantization) {
  return {.weight = parts.required(QuantPart::weight),
          .weight_scale = parts.required(QuantPart::weight_scale),
          .block_rows = quantization.block_rows,
          .block_cols = quantization.block_cols};
}

Error other_method(const Parts& parts, const HfQuantization& quantization) {
  return {ErrorCode::mismatch,
          "is no part of a weight as the method of config.json (" + quantization.name + ") has it",
          "tensor " + quote_name(parts.any().name),
          "the config and the weights do not belong together"};
}

/// Calls for_module with the module as its method has it.
template <class T, class ForModule>
Result<T> with_module(const HfQuantization& quantization, const QuantizedModule& module,
                      ForModule for_module) {
  Parts parts(module);
  const auto call = [&](const auto& made) -> Result<T> {
    if (parts.error()) return *parts.error();
    return for_module(made);
  };
  const StoredTensor* weight = stored_part(module, QuantPart::weight);
  const bool has_floats = weight != nullptr && weight->type == StoredType::f8_e4m3;
  switch (quantization.method) {
    case HfQuantMethod::gptq:
      if (parts.has(QuantPart::qweight)) return call(gptq_module(parts, quantization));
      break;
    case HfQuantMethod::awq:
      if (parts.has(QuantPart::qweight)) return call(awq_module(parts, quantization));
      break;
    case HfQuantMethod::compressed_tensors:
      if (parts.has(QuantPart::weight_packed)) return call(pack_module(parts, quantization));
      if (has_floats) return call(fp8_module(parts, quantization));
      if (weight != nullptr) return call(int_module(parts));
      break;
    case HfQuantMethod::fp8:
      if (has_floats) return call(fp8_module(parts, quantization));
      break;
    case HfQuantMethod::none:
      break;
  }
  return other_method(parts, quantization);
}

}  // namespace

std::optional<QuantPlace> place_quant_part(const StoredTensor& tensor) {
  const std::string_view name = tensor.name;
  constexpr std::string_view kWeight = ".weight";
  if (name.ends_with(kWeight)) {
    if (tensor.type != StoredType::i8 && tensor.type != StoredType::f8_e4m3) return std::nullopt;
    return QuantPlace{name.substr(0, name.size() - kWeight.size()), QuantPart::weight};
  }
  for (const auto& [ending, part] : kEndings) {
    if (name.ends_with(ending))
      return QuantPlace{name.substr(0, name.size() - ending.size()), part};
  }
  return std::nullopt;
}

Result<UnpackedPlan> plan_quantized(const HfQuantization& quantization,
                                    const QuantizedModule& module) {
  return with_module<UnpackedPlan>(quantization, module, [](const auto& made) {
    using M = std::remove_cvref_t<decltype(made)>;
    if constexpr (std::is_same_v<M, GptqModule>) return plan_gptq(made);
    if constexpr (std::is_same_v<M, AwqModule>) return plan_awq(made);
    if constexpr (std::is_same_v<M, PackQuantizedModule>) return plan_pack_quantized(made);
    if constexpr (std::is_same_v<M, ScaledIntModule>) return plan_scaled_int(made);
    if constexpr (std::is_same_v<M, ScaledFp8Module>) return plan_scaled_fp8(made);
  });
}

Result<UnpackedMatrix> unpack_quantized(const HfQuantization& quantization,
                                        const QuantizedModule& module) {
  return with_module<UnpackedMatrix>(quantization, module, [](const auto& made) {
    using M = std::remove_cvref_t<decltype(made)>;
    if constexpr (std::is_same_v<M, GptqModule>) return unpack_gptq(made);
    if constexpr (std::is_same_v<M, AwqModule>) return unpack_awq(made);
    if constexpr (std::is_same_v<M, PackQuantizedModule>) return unpack_pack_quantized(made);
    if constexpr (std::is_same_v<M, ScaledIntModule>) return unpack_scaled_int(made);
    if constexpr (std::is_same_v<M, ScaledFp8Module>) return unpack_scaled_fp8(made);
  });
}

}  // namespace headrace
