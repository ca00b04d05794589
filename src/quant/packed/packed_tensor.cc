// See packed_tensor.h.
#include "quant/packed/packed_tensor.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "tensor/half.h"

namespace headrace::packed {
namespace {

uint64_t type_bytes(PackedType type) {
  switch (type) {
    case PackedType::i8:
    case PackedType::u8:
    case PackedType::f8_e4m3:
      return 1;
    case PackedType::f16:
    case PackedType::bf16:
      return 2;
    case PackedType::i32:
    case PackedType::f32:
      return 4;
    case PackedType::i64:
      return 8;
  }
  return 1;
}

std::string names_of(std::initializer_list<PackedType> types) {
  std::string out;
  for (const PackedType type : types) {
    out += (out.empty() ? "" : " or ") + std::string(type_name(type));
  }
  return out;
}

template <class T>
T element(const PackedTensor& tensor, size_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof value, sizeof value);
  return value;
}

float float_at(const PackedTensor& tensor, size_t index) {
  switch (tensor.type) {
    case PackedType::f16:
      return f16_to_f32(element<uint16_t>(tensor, index));
    case PackedType::bf16:
      return bf16_to_f32(element<uint16_t>(tensor, index));
    default:
      return element<float>(tensor, index);
  }
}

}  // namespace

std::string_view type_name(PackedType type) {
  switch (type) {
    case PackedType::i8:
      return "I8";
    case PackedType::u8:
      return "U8";
    case PackedType::i32:
      return "I32";
    case PackedType::i64:
      return "I64";
    case PackedType::f8_e4m3:
      return "F8_E4M3";
    case PackedType::f16:
      return "F16";
    case PackedType::bf16:
      return "BF16";
    case PackedType::f32:
      return "F32";
  }
  return "unknown";
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

Error wrong(const PackedTensor& tensor, const std::string& message) {
  return {ErrorCode::corrupt_data, message, "tensor '" + tensor.name + "'",
          "the quantisation of this checkpoint is not as its configuration says"};
}

Result<void> check_tensor(const PackedTensor& tensor, std::initializer_list<PackedType> types) {
  if (std::find(types.begin(), types.end(), tensor.type) == types.end()) {
    return wrong(tensor, "expected elements of type " + names_of(types) + ", found " +
                             std::string(type_name(tensor.type)));
  }
  std::optional<uint64_t> bytes = type_bytes(tensor.type);
  for (const int64_t dim : tensor.shape) {
    if (dim < 0) return wrong(tensor, "has a negative dimension: " + shape_text(tensor.shape));
    if (bytes) bytes = checked_mul(*bytes, static_cast<uint64_t>(dim));
  }
  if (!bytes || *bytes != tensor.data.size()) {
    return wrong(tensor, "shape " + shape_text(tensor.shape) + " of " +
                             std::string(type_name(tensor.type)) + " needs " +
                             (bytes ? std::to_string(*bytes) : "too many") + " bytes, found " +
                             std::to_string(tensor.data.size()));
  }
  return {};
}

Result<void> check_shape(const PackedTensor& tensor, std::initializer_list<PackedType> types,
                         std::span<const int64_t> shape) {
  HEADRACE_TRY(check_tensor(tensor, types));
  if (std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end())) return {};
  return wrong(tensor,
               "expected shape " + shape_text(shape) + ", found " + shape_text(tensor.shape));
}

Result<std::vector<float>> read_floats(const PackedTensor& tensor) {
  HEADRACE_TRY(check_tensor(tensor, {PackedType::f16, PackedType::bf16, PackedType::f32}));
  std::vector<float> values(tensor.data.size() / type_bytes(tensor.type));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = float_at(tensor, i);
    if (!std::isfinite(values[i])) {
      return wrong(tensor, "element " + std::to_string(i) + " is " +
                               (std::isnan(values[i]) ? "not a number" : "infinite"));
    }
  }
  return values;
}

std::vector<int64_t> read_ints(const PackedTensor& tensor) {
  std::vector<int64_t> values(tensor.data.size() / type_bytes(tensor.type));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.type == PackedType::i64 ? element<int64_t>(tensor, i)
                                               : int64_t{element<int32_t>(tensor, i)};
  }
  return values;
}

Result<void> check_bits(const PackedTensor& tensor, int bits, std::initializer_list<int> known) {
  if (std::find(known.begin(), known.end(), bits) != known.end()) return {};
  std::string names;
  for (const int one : known) names += (names.empty() ? "" : ", ") + std::to_string(one);
  return Error{ErrorCode::unsupported,
               "weights of " + std::to_string(bits) + " bits; this build reads those of " + names,
               "tensor '" + tensor.name + "'", "use another quantisation of the model"};
}

}  // namespace headrace::packed
