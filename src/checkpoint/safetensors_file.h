// One safetensors file in memory: what its header says of each tensor. Does not own the bytes. Must
// not know models.
//
// Source: the safetensors format description. 8 bytes, the header's length, little-endian; the
// header, JSON of {name: {dtype, shape, data_offsets: [begin, end]}} and "__metadata__"; the data,
// which the tensors cover without holes or overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/heap_budget.h"
#include "headrace/result.h"
#include "quant/format.h"

namespace headrace {

/// How elements are stored.
enum class StoredType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
};

/// "F8_E4M3", as headers spell it.
std::string_view stored_type_name(StoredType type);
/// Of one element.
uint64_t stored_type_bytes(StoredType type);
/// The weight format that is the same bytes (F32, F16, BF16); nothing for the others.
std::optional<Format> format_of(StoredType type);

/// `shape` has the outermost dimension first. `data` points into the file.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// The longest header, as the format's own library limits it.
inline constexpr uint64_t kSafetensorsMaxHeader = 100'000'000;

/// Whether these bytes can only be the begin of a safetensors file.
bool is_safetensors(std::span<const std::byte> file);

/// Reads the header, and checks it against the file. Tensors come in the order of their data.
/// Memory taken is bounded by `budget`. Errors name tensor or byte: corrupt_data (no JSON of the
/// described form, a name twice, a dimension below 0, a size other than the shape's, data outside
/// the file, holes, overlaps), unsupported (an unknown dtype), resource_exhausted.
Result<std::vector<StoredTensor>> read_safetensors(std::span<const std::byte> file,
                                                   HeapBudget& budget);

}  // namespace headrace
