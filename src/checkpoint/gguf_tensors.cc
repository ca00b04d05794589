// See gguf_tensors.h.
#include "checkpoint/gguf_tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "checkpoint/ggml_type_name.h"
#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

/// A record as it stands in the file.
struct Record {
  uint64_t record_offset = 0;  ///< of the record, in the file
  std::string_view name;
  uint32_t num_dims = 0;
  std::array<int64_t, kGgufMaxDims> dims = {1, 1, 1, 1};  ///< fastest first
  uint32_t type = 0;
  uint64_t data_offset = 0;  ///< in the data section
  uint64_t bytes = 0;        ///< of the data; computed
};

// Heap bytes a tensor costs at most: itself, its record, the longest name; then its shape, its
// place in the orders by name and by offset, and a second copy while parts are joined.
constexpr uint64_t kTensorBytes =
    sizeof(CheckpointTensor) + sizeof(Record) + kGgufLongestTensorName + 160;

Error tensor_error(ErrorCode code, const Record& record, const std::string& fault,
                   const std::string& hint = "") {
  return Error{code, "tensor " + quote_name(record.name) + " " + fault,
               GgufCursor::byte_place(record.record_offset), hint};
}

Error corrupt(const Record& record, const std::string& fault, const std::string& hint = "") {
  return tensor_error(ErrorCode::corrupt_data, record, fault, hint);
}

/// "4 x 3 x 2", in the file's order.
std::string dims_text(const Record& record) {
  std::string text = std::to_string(record.dims[0]);
  for (uint32_t i = 1; i < record.num_dims; ++i) text += " x " + std::to_string(record.dims[i]);
  return text;
}

/// Reads the fields after the name.
Result<void> read_fields(GgufCursor& cursor, Record& record) {
  HEADRACE_ASSIGN(record.num_dims, cursor.read<uint32_t>("the number of dimensions"));
  if (record.num_dims > kGgufMaxDims) {
    return Error{ErrorCode::corrupt_data,
                 "has " + std::to_string(record.num_dims) + " dimensions, at most " +
                     std::to_string(kGgufMaxDims) + " are allowed",
                 GgufCursor::byte_place(cursor.offset() - sizeof record.num_dims), ""};
  }
  for (uint32_t i = 0; i < record.num_dims; ++i) {
    HEADRACE_ASSIGN(record.dims[i], cursor.read<int64_t>("a dimension"));
  }
  HEADRACE_ASSIGN(record.type, cursor.read<uint32_t>("the type"));
  HEADRACE_ASSIGN(record.data_offset, cursor.read<uint64_t>("the data offset"));
  return {};
}

Result<Record> read_record(GgufCursor& cursor, uint64_t index) {
  Record record;
  record.record_offset = cursor.offset();
  auto name = cursor.read_string("the name", kGgufLongestTensorName);
  if (!name.ok()) return std::move(name).error().at("tensor number " + std::to_string(index));
  if (name->empty()) {
    return Error{ErrorCode::corrupt_data, "the name is empty",
                 "tensor number " + std::to_string(index) + " at " +
                     GgufCursor::byte_place(record.record_offset),
                 ""};
  }
  record.name = *name;
  auto status = read_fields(cursor, record);
  if (!status.ok()) return std::move(status).error().at("tensor " + quote_name(record.name));
  return record;
}

Result<void> check_dims(const Record& record) {
  std::optional<int64_t> num_elements = 1;
  for (uint32_t i = 0; i < record.num_dims; ++i) {
    const int64_t dim = record.dims[i];
    if (dim <= 0) {
      return corrupt(record, "dimension " + std::to_string(i) + " must be positive, found " +
                                 std::to_string(dim));
    }
    if (num_elements) num_elements = checked_mul(*num_elements, dim);
  }
  if (!num_elements) {
    return corrupt(
        record, "has dimensions " + dims_text(record) + ", more elements than 63 bits can count");
  }
  return {};
}

Result<Format> check_format(const Record& record) {
  if (const auto format = format_from_ggml_type(record.type)) return *format;
  const std::string name(ggml_type_name(record.type));
  return tensor_error(ErrorCode::unsupported, record,
                      "has type number " + std::to_string(record.type) +
                          (name.empty() ? "" : " (" + name + ")") +
                          ", which this build cannot decode",
                      "use a file in another format, such as Q8_0 or Q4_K_M");
}

/// Bytes of the tensor's data.
Result<uint64_t> data_bytes(const Record& record, const FormatTraits& traits) {
  const auto cols = static_cast<uint64_t>(record.dims[0]);
  if (cols % traits.block_elements != 0) {
    return corrupt(record, "has rows of " + std::to_string(cols) + " weights, but " +
                               std::string(traits.name) + " needs a multiple of " +
                               std::to_string(traits.block_elements));
  }
  auto bytes = format_row_bytes(traits.format, cols);
  for (uint32_t i = 1; i < record.num_dims && bytes; ++i) {
    bytes = checked_mul(*bytes, static_cast<uint64_t>(record.dims[i]));
  }
  if (!bytes) {
    return corrupt(record, "has dimensions " + dims_text(record) + " of " +
                               std::string(traits.name) + ", more bytes than 64 bits can count");
  }
  return *bytes;
}

/// Checks a record by itself and turns it into a tensor whose data is not found yet.
Result<CheckpointTensor> make_tensor(Record& record, uint64_t alignment) {
  HEADRACE_TRY(check_dims(record));
  HEADRACE_ASSIGN(const Format format, check_format(record));
  HEADRACE_ASSIGN(record.bytes, data_bytes(record, format_traits(format)));
  if (record.data_offset % alignment != 0) {
    return corrupt(record, "has data offset " + std::to_string(record.data_offset) +
                               ", no multiple of the alignment " + std::to_string(alignment));
  }
  CheckpointTensor tensor;
  tensor.name = record.name;
  tensor.format = format;
  const auto num_dims = std::max<uint32_t>(record.num_dims, 1);  // a scalar is a vector of one
  tensor.shape.assign(record.dims.rend() - num_dims, record.dims.rend());
  return tensor;
}

Result<std::span<const std::byte>> find_data(std::span<const std::byte> file, uint64_t data_begin,
                                             const Record& record) {
  const uint64_t section_bytes = file.size() - data_begin;
  const auto end = checked_add(record.data_offset, record.bytes);
  if (!end || *end > section_bytes) {
    return corrupt(record,
                   "needs " + std::to_string(record.bytes) + " bytes at offset " +
                       std::to_string(record.data_offset) + " of the data, which has " +
                       std::to_string(section_bytes) + " bytes",
                   kCutShortHint);
  }
  return file.subspan(data_begin + record.data_offset, record.bytes);
}

/// The indices 0..n-1 in the order of `before`.
template <class Before>
std::vector<uint32_t> sorted_indices(size_t n, Before before) {
  std::vector<uint32_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
  std::sort(order.begin(), order.end(), before);
  return order;
}

Result<void> check_names(const std::vector<Record>& records) {
  const auto order = sorted_indices(records.size(), [&](uint32_t a, uint32_t b) {
    return std::pair(records[a].name, a) < std::pair(records[b].name, b);
  });
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const Record& second = records[order[i + 1]];
    if (records[order[i]].name == second.name) return corrupt(second, "appears twice");
  }
  return {};
}

Result<void> check_overlap(const std::vector<Record>& records) {
  const auto order = sorted_indices(records.size(), [&](uint32_t a, uint32_t b) {
    return std::pair(records[a].data_offset, a) < std::pair(records[b].data_offset, b);
  });
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const Record& first = records[order[i]];
    const Record& second = records[order[i + 1]];
    if (first.data_offset + first.bytes <= second.data_offset) continue;
    return corrupt(second, "shares bytes with tensor " + quote_name(first.name) +
                               ": its data begins at " + std::to_string(second.data_offset) +
                               ", before " + std::to_string(first.data_offset + first.bytes));
  }
  return {};
}

}  // namespace

Result<std::vector<CheckpointTensor>> read_gguf_tensors(GgufCursor& cursor, uint64_t count,
                                                        uint64_t alignment,
                                                        std::span<const std::byte> file,
                                                        HeapBudget& budget) {
  auto booked = budget.take(count, kTensorBytes);
  if (!booked.ok()) {
    return std::move(booked).error().at(std::to_string(count) + " tensors at " +
                                        GgufCursor::byte_place(cursor.offset()));
  }
  std::vector<CheckpointTensor> tensors;
  std::vector<Record> records;
  tensors.reserve(count);
  records.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    HEADRACE_ASSIGN(Record record, read_record(cursor, i));
    HEADRACE_ASSIGN(CheckpointTensor tensor, make_tensor(record, alignment));
    tensors.push_back(std::move(tensor));
    records.push_back(record);
  }
  if (count == 0) return tensors;

  const auto data_begin = checked_align_up(cursor.offset(), alignment);
  if (!data_begin || *data_begin > file.size()) {
    return Error{ErrorCode::corrupt_data,
                 "the file ends before its tensor data, which begins at the next multiple of " +
                     std::to_string(alignment),
                 GgufCursor::byte_place(cursor.offset()), kCutShortHint};
  }
  for (uint64_t i = 0; i < count; ++i) {
    HEADRACE_ASSIGN(tensors[i].data, find_data(file, *data_begin, records[i]));
  }
  HEADRACE_TRY(check_names(records));
  HEADRACE_TRY(check_overlap(records));
  return tensors;
}

}  // namespace headrace
