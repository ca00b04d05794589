// See safetensors_file.h.
#include "checkpoint/safetensors_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "checkpoint/gguf_cursor.h"
#include "checkpoint/quote_name.h"
#include "checkpoint/safetensors_header.h"

namespace headrace {
namespace {

struct StoredTypeTraits {
  std::string_view name;
  uint64_t bytes;
};

// In the order of StoredType.
constexpr std::array kStoredTypes = {
    StoredTypeTraits{"F64", 8},  StoredTypeTraits{"F32", 4},     StoredTypeTraits{"F16", 2},
    StoredTypeTraits{"BF16", 2}, StoredTypeTraits{"F8_E4M3", 1}, StoredTypeTraits{"F8_E5M2", 1},
    StoredTypeTraits{"I64", 8},  StoredTypeTraits{"I32", 4},     StoredTypeTraits{"I16", 2},
    StoredTypeTraits{"I8", 1},   StoredTypeTraits{"U64", 8},     StoredTypeTraits{"U32", 4},
    StoredTypeTraits{"U16", 2},  StoredTypeTraits{"U8", 1},      StoredTypeTraits{"BOOL", 1},
};

Error tensor_fault(const SafetensorsRecord& record, std::string message) {
  return Error{ErrorCode::corrupt_data, std::move(message), "tensor " + quote_name(record.name),
               ""};
}

std::string dims_of(const SafetensorsRecord& record) {
  std::string text = "[";
  for (size_t i = 0; i < record.shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(record.shape[i]);
  }
  return text + "]";
}

/// What shape and dtype need.
Result<uint64_t> bytes_needed(const SafetensorsRecord& record) {
  std::optional<uint64_t> bytes = stored_type_bytes(record.type);
  for (const int64_t dim : record.shape) {
    if (bytes) bytes = checked_mul(*bytes, static_cast<uint64_t>(dim));
  }
  if (!bytes) {
    return tensor_fault(record,
                        "has shape " + dims_of(record) + ", more bytes than 64 bits can count");
  }
  return *bytes;
}

/// Of a record alone, then of it beside its neighbours (`expected_begin`: where the data before it
/// ends).
Result<void> check_record(const SafetensorsRecord& record, uint64_t expected_begin,
                          uint64_t data_bytes) {
  const auto [begin, end] = record.offsets;
  const std::string place = std::to_string(begin) + " to " + std::to_string(end);
  if (end < begin) return tensor_fault(record, "has data_offsets " + place);
  if (end > data_bytes) {
    Error error = tensor_fault(record, "has data at " + place + ", but the file's data are " +
                                           std::to_string(data_bytes) + " bytes");
    error.hint = kCutShortHint;
    return error;
  }
  HEADRACE_ASSIGN(const uint64_t needed, bytes_needed(record));
  if (needed != end - begin) {
    return tensor_fault(record, "has " + std::to_string(end - begin) + " bytes, but shape " +
                                    dims_of(record) + " of " +
                                    std::string(stored_type_name(record.type)) + " needs " +
                                    std::to_string(needed));
  }
  if (begin < expected_begin) {
    return tensor_fault(record, "begins at byte " + std::to_string(begin) +
                                    " of the data, inside the tensor before it, which ends at " +
                                    std::to_string(expected_begin));
  }
  if (begin > expected_begin) {
    return tensor_fault(record, "begins at byte " + std::to_string(begin) +
                                    " of the data; nothing holds the bytes from " +
                                    std::to_string(expected_begin));
  }
  return {};
}

Result<void> check_names(const std::vector<SafetensorsRecord>& records) {
  std::vector<std::string_view> names;
  names.reserve(records.size());
  for (const SafetensorsRecord& record : records) names.push_back(record.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return Error{ErrorCode::corrupt_data, "tensor " + quote_name(*twice) + " is there twice", "", ""};
}

Result<uint64_t> header_bytes(std::span<const std::byte> file) {
  GgufCursor cursor(file);
  HEADRACE_ASSIGN(const auto length, cursor.read<uint64_t>("the header's length"));
  if (length > kSafetensorsMaxHeader) {
    return Error{ErrorCode::corrupt_data,
                 "the header's length is " + std::to_string(length) + " bytes; at most " +
                     std::to_string(kSafetensorsMaxHeader) + " are allowed",
                 "byte 0", ""};
  }
  if (length > cursor.bytes_left()) {
    return Error{ErrorCode::corrupt_data,
                 "the header's length is " + std::to_string(length) + " bytes, but only " +
                     std::to_string(cursor.bytes_left()) + " are left",
                 "byte 0", kCutShortHint};
  }
  return length;
}

}  // namespace

std::string_view stored_type_name(StoredType type) {
  return kStoredTypes[static_cast<size_t>(type)].name;
}

uint64_t stored_type_bytes(StoredType type) {
  return kStoredTypes[static_cast<size_t>(type)].bytes;
}

std::optional<Format> format_of(StoredType type) {
  switch (type) {
    case StoredType::f32:
      return Format::f32;
    case StoredType::f16:
      return Format::f16;
    case StoredType::bf16:
      return Format::bf16;
    default:
      return std::nullopt;
  }
}

bool is_safetensors(std::span<const std::byte> file) {
  // The five high bytes of a header's length that is allowed are 0 but for the lowest.
  return file.size() > sizeof(uint64_t) && file[8] == std::byte{'{'} &&
         std::all_of(file.begin() + 4, file.begin() + 8,
                     [](std::byte byte) { return byte == std::byte{0}; });
}

Result<std::vector<StoredTensor>> read_safetensors(std::span<const std::byte> file,
                                                   HeapBudget& budget) {
  HEADRACE_ASSIGN(const uint64_t length, header_bytes(file));
  const auto json =
      std::string_view(reinterpret_cast<const char*>(file.data()) + sizeof(uint64_t), length);
  HEADRACE_ASSIGN(auto records, read_safetensors_header(json, budget));
  HEADRACE_TRY(check_names(records));
  // Tensors of no bytes come before those that begin where they stand.
  std::ranges::sort(records, {}, &SafetensorsRecord::offsets);
  const std::span<const std::byte> data = file.subspan(sizeof(uint64_t) + length);
  std::vector<StoredTensor> tensors;
  tensors.reserve(records.size());
  uint64_t covered = 0;
  for (SafetensorsRecord& record : records) {
    HEADRACE_TRY(check_record(record, covered, data.size()));
    const auto [begin, end] = record.offsets;
    tensors.push_back({std::move(record.name), record.type, std::move(record.shape),
                       data.subspan(begin, end - begin)});
    covered = end;
  }
  if (covered != data.size()) {
    return Error{ErrorCode::corrupt_data,
                 "the tensors end at byte " + std::to_string(covered) + " of the data, which are " +
                     std::to_string(data.size()) + " bytes",
                 "", "fetch the file again"};
  }
  return tensors;
}

}  // namespace headrace
