// See hf_tensor.h.
#include "model/hf/hf_tensor.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "checkpoint/quote_name.h"
#include "quant/f8.h"
#include "tensor/half.h"

namespace headrace {
namespace {

Error tensor_error(const StoredTensor& tensor, std::string message,
                   ErrorCode code = ErrorCode::corrupt_data) {
  return Error{code, std::move(message), "tensor " + quote_name(tensor.name), ""};
}

template <class T>
T element(const StoredTensor& tensor, size_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

float value_of(const StoredTensor& tensor, size_t index) {
  switch (tensor.type) {
    case StoredType::f64:
      return static_cast<float>(element<double>(tensor, index));
    case StoredType::f32:
      return element<float>(tensor, index);
    case StoredType::f16:
      return f16_to_f32(element<uint16_t>(tensor, index));
    case StoredType::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(element<uint16_t>(tensor, index)) << 16);
    case StoredType::f8_e4m3:
      return e4m3_to_f32(element<uint8_t>(tensor, index));
    case StoredType::f8_e5m2:  // the high byte of binary16
      return f16_to_f32(static_cast<uint16_t>(element<uint8_t>(tensor, index) << 8));
    default:
      return 0;
  }
}

size_t num_elements(const StoredTensor& tensor) {
  return tensor.data.size() / stored_type_bytes(tensor.type);
}

/// `tensor` as `format`, which is its own or holds all of its values (F64 is rounded).
std::vector<std::byte> convert(const StoredTensor& tensor, Format format) {
  if (format_of(tensor.type) == format) return {tensor.data.begin(), tensor.data.end()};
  const size_t count = num_elements(tensor);
  if (format == Format::f16) {
    std::vector<std::byte> out(count * sizeof(uint16_t));
    for (size_t i = 0; i < count; ++i) {
      const uint16_t half = f32_to_f16(value_of(tensor, i));
      std::memcpy(out.data() + i * sizeof(half), &half, sizeof(half));
    }
    return out;
  }
  std::vector<std::byte> out(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    const float value = value_of(tensor, i);
    std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
  }
  return out;
}

std::vector<std::byte> plus_one(std::vector<std::byte> floats) {
  for (size_t i = 0; i < floats.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, floats.data() + i, sizeof(value));
    value += 1;
    std::memcpy(floats.data() + i, &value, sizeof(value));
  }
  return floats;
}

/// [rows, cols] of elements of `size` bytes to [cols, rows], tile by tile.
std::vector<std::byte> transposed(const std::vector<std::byte>& in, size_t rows, size_t cols,
                                  size_t size) {
  constexpr size_t kTile = 32;
  std::vector<std::byte> out(in.size());
  for (size_t row = 0; row < rows; row += kTile) {
    for (size_t col = 0; col < cols; col += kTile) {
      for (size_t r = row; r < std::min(rows, row + kTile); ++r) {
        for (size_t c = col; c < std::min(cols, col + kTile); ++c) {
          std::memcpy(out.data() + (c * rows + r) * size, in.data() + (r * cols + c) * size, size);
        }
      }
    }
  }
  return out;
}

/// How all experts' matrices lie in one tensor.
struct ExpertLayout {
  bool is_transposed = false;  ///< [experts, in, out]
  int64_t rows = 0;            ///< outputs of an expert
  int64_t cols = 0;
};

Result<ExpertLayout> expert_layout(const StoredTensor& tensor, HfChange change, int64_t width) {
  const std::vector<int64_t>& shape = tensor.shape;
  const bool is_down = change == HfChange::expert_down;
  if (shape.size() == 3) {
    // The width is that of a down projection's outputs, and of the others' inputs.
    const size_t usual = is_down ? 1 : 2;
    ExpertLayout out{shape[usual] != width, shape[1], shape[2]};
    if (out.is_transposed) std::swap(out.rows, out.cols);
    const bool is_wide = (is_down ? out.rows : out.cols) == width;
    if (is_wide && (is_down || out.rows % 2 == 0)) return out;
  }
  std::string found = "[";
  for (const int64_t dim : shape) found += (found.size() > 1 ? ", " : "") + std::to_string(dim);
  return tensor_error(tensor, "expected matrices of all experts, " + std::to_string(width) +
                                  (is_down ? " rows" : " columns and an even number of rows") +
                                  " each, found shape " + found + "]");
}

/// All experts' matrices, or the half of their rows that is wanted, one after the other.
Result<std::vector<std::byte>> make_experts(const StoredTensor& tensor, HfChange change,
                                            Format format, const HfChangeContext& context) {
  HEADRACE_ASSIGN(const ExpertLayout layout, expert_layout(tensor, change, context.width));
  const size_t size = format_traits(format).block_bytes;
  const auto rows = static_cast<size_t>(layout.rows);
  const auto cols = static_cast<size_t>(layout.cols);
  const bool is_half = change == HfChange::gate_and_up;
  const size_t num_taken = is_half ? rows / 2 : rows;
  const size_t first = is_half && context.half == ExpertHalf::up ? num_taken : 0;
  const std::vector<std::byte> all = convert(tensor, format);
  std::vector<std::byte> out;
  out.reserve(num_taken * cols * size * static_cast<size_t>(tensor.shape[0]));
  for (int64_t e = 0; e < tensor.shape[0]; ++e) {
    const auto begin =
        all.begin() + static_cast<int64_t>(static_cast<size_t>(e) * rows * cols * size);
    std::vector<std::byte> one(begin, begin + static_cast<int64_t>(rows * cols * size));
    if (layout.is_transposed) one = transposed(one, cols, rows, size);
    const auto taken = one.begin() + static_cast<int64_t>(first * cols * size);
    out.insert(out.end(), taken, taken + static_cast<int64_t>(num_taken * cols * size));
  }
  return out;
}

}  // namespace

std::optional<Format> format_read_as(StoredType type) {
  switch (type) {
    case StoredType::f64:
      return Format::f32;
    case StoredType::f8_e4m3:
    case StoredType::f8_e5m2:
      return Format::f16;
    default:
      return format_of(type);
  }
}

bool lies_as_it_is(const StoredTensor& tensor, HfChange change) {
  if (change != HfChange::none || !format_of(tensor.type)) return false;
  const auto address = reinterpret_cast<uintptr_t>(tensor.data.data());
  return address % stored_type_bytes(tensor.type) == 0;
}

Result<MadeShape> made_shape(std::span<const StoredTensor* const> parts, HfChange change,
                             const HfChangeContext& context) {
  const StoredTensor& first = *parts.front();
  const auto format = format_read_as(first.type);
  if (!format) {
    return tensor_error(first,
                        "has dtype " + std::string(stored_type_name(first.type)) +
                            "; expected floating-point weights",
                        ErrorCode::unsupported);
  }
  MadeShape out{*format, first.shape};
  switch (change) {
    case HfChange::add_one:
      out.format = Format::f32;
      break;
    case HfChange::transpose:
      if (first.shape.size() == 2) {
        std::swap(out.shape[0], out.shape[1]);
      } else if (first.shape.size() > 2) {
        return tensor_error(first, "expected a matrix, found " +
                                       std::to_string(first.shape.size()) + " dimensions");
      }
      break;
    case HfChange::stack:
      out.format = Format::f32;
      for (const StoredTensor* part : parts) {
        if (part->shape.size() == 1 && part->shape == first.shape && format_read_as(part->type)) {
          continue;
        }
        return tensor_error(*part,
                            "expected a vector of the same size as " + quote_name(first.name));
      }
      out.shape.insert(out.shape.begin(), static_cast<int64_t>(parts.size()));
      break;
    case HfChange::gate_and_up:
    case HfChange::expert_down: {
      HEADRACE_ASSIGN(const ExpertLayout layout, expert_layout(first, change, context.width));
      const bool is_half = change == HfChange::gate_and_up;
      out.shape = {first.shape[0], is_half ? layout.rows / 2 : layout.rows, layout.cols};
      break;
    }
    case HfChange::none:
    case HfChange::skip:
      break;
  }
  return out;
}

Result<std::vector<std::byte>> make_tensor(std::span<const StoredTensor* const> parts,
                                           HfChange change, const HfChangeContext& context) {
  HEADRACE_ASSIGN(const MadeShape made, made_shape(parts, change, context));
  const StoredTensor& first = *parts.front();
  switch (change) {
    case HfChange::add_one:
      return plus_one(convert(first, Format::f32));
    case HfChange::transpose:
      if (first.shape.size() != 2) return convert(first, made.format);
      return transposed(convert(first, made.format), static_cast<size_t>(first.shape[0]),
                        static_cast<size_t>(first.shape[1]),
                        format_traits(made.format).block_bytes);
    case HfChange::stack: {
      std::vector<std::byte> out;
      for (const StoredTensor* part : parts) {
        const std::vector<std::byte> row = convert(*part, Format::f32);
        out.insert(out.end(), row.begin(), row.end());
      }
      return out;
    }
    case HfChange::gate_and_up:
    case HfChange::expert_down:
      return make_experts(first, change, made.format, context);
    case HfChange::none:
    case HfChange::skip:
      break;
  }
  return convert(first, made.format);
}

}  // namespace headrace
