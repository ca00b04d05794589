// Element types of activations and of the KV cache. Weights have block formats instead, which
// belong to quant/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headrace {

enum class DType : uint8_t { f32, f16, bf16, i32, i8 };

constexpr size_t dtype_bytes(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i8:
      return 1;
  }
  return 0;
}

constexpr std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i8:
      return "i8";
  }
  return "unknown";
}

}  // namespace headrace
