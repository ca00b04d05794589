// See gguf_writer.h. Layout: the GGUF specification (version 3).
#include "checkpoint/gguf_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/check.h"
#include "base/checked.h"
#include "base/os/atomic_file.h"
#include "checkpoint/gguf_metadata.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/gguf_value.h"
#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

constexpr uint64_t kAlignment = 32;
constexpr std::string_view kAlignmentKey = "general.alignment";
/// Readers want this one as an array of bytes.
constexpr std::string_view kCharsMapKey = "tokenizer.ggml.precompiled_charsmap";

template <class T>
void put_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_type(std::string& out, GgufType type) {
  put_number(out, static_cast<uint32_t>(type));
}

void put_string(std::string& out, std::string_view text) {
  put_number(out, static_cast<uint64_t>(text.size()));
  out += text;
}

/// How a key's numbers are written: what the narrowest usual type is that holds them all.
template <class Narrow, class T>
bool all_fit(std::span<const T> values) {
  return std::all_of(values.begin(), values.end(), [](T value) {
    if constexpr (std::is_same_v<T, double>) {
      // NaN is one in either type.
      return value != value || static_cast<double>(static_cast<Narrow>(value)) == value;
    } else {
      return value >= static_cast<T>(std::numeric_limits<Narrow>::min()) &&
             value <= static_cast<T>(std::numeric_limits<Narrow>::max());
    }
  });
}

template <class Narrow, class T>
void put_numbers_as(std::string& out, GgufType type, std::span<const T> values, bool is_array) {
  if (is_array) put_type(out, GgufType::array);
  put_type(out, type);
  if (is_array) put_number(out, static_cast<uint64_t>(values.size()));
  for (const T value : values) put_number(out, static_cast<Narrow>(value));
}

void put_numbers(std::string& out, std::string_view key, std::span<const int64_t> values,
                 bool is_array) {
  if (key == kCharsMapKey && all_fit<int8_t>(values)) {
    put_numbers_as<int8_t>(out, GgufType::i8, values, is_array);
  } else if (all_fit<int32_t>(values)) {
    put_numbers_as<int32_t>(out, GgufType::i32, values, is_array);
  } else {
    put_numbers_as<int64_t>(out, GgufType::i64, values, is_array);
  }
}

void put_numbers(std::string& out, std::string_view key, std::span<const uint64_t> values,
                 bool is_array) {
  if (key == kCharsMapKey && all_fit<uint8_t>(values)) {
    put_numbers_as<uint8_t>(out, GgufType::u8, values, is_array);
  } else if (all_fit<uint32_t>(values)) {
    put_numbers_as<uint32_t>(out, GgufType::u32, values, is_array);
  } else {
    put_numbers_as<uint64_t>(out, GgufType::u64, values, is_array);
  }
}

void put_numbers(std::string& out, std::string_view, std::span<const double> values,
                 bool is_array) {
  if (all_fit<float>(values)) {
    put_numbers_as<float>(out, GgufType::f32, values, is_array);
  } else {
    put_numbers_as<double>(out, GgufType::f64, values, is_array);
  }
}

/// Type and value of each kind of MetaValue.
struct ValueWriter {
  std::string& out;
  std::string_view key;

  void operator()(bool value) const {
    put_type(out, GgufType::boolean);
    put_number(out, static_cast<uint8_t>(value ? 1 : 0));
  }
  void operator()(std::string_view value) const {
    put_type(out, GgufType::string);
    put_string(out, value);
  }
  void operator()(const std::vector<bool>& values) const {
    begin_array(GgufType::boolean, values.size());
    for (const bool value : values) put_number(out, static_cast<uint8_t>(value ? 1 : 0));
  }
  void operator()(const std::vector<std::string_view>& values) const {
    begin_array(GgufType::string, values.size());
    for (const std::string_view value : values) put_string(out, value);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T value) const { put_numbers(out, key, std::span<const T>(&value, 1), false); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const std::vector<T>& values) const {
    put_numbers(out, key, std::span<const T>(values), true);
  }

  void begin_array(GgufType type, size_t count) const {
    put_type(out, GgufType::array);
    put_type(out, type);
    put_number(out, static_cast<uint64_t>(count));
  }
};

Error unwritable(const std::string& what) {
  return {ErrorCode::invalid_argument, what + " cannot stand in a GGUF file", "", ""};
}

Result<void> check_key(std::string_view key) {
  if (!key.empty() && key.size() <= kGgufLongestKey) return {};
  return unwritable("a key of " + std::to_string(key.size()) + " bytes");
}

/// Bytes of the tensor's data.
Result<uint64_t> checked_bytes(const GgufTensorPlan& tensor) {
  const std::string name = "tensor " + quote_name(tensor.name);
  if (tensor.name.empty() || tensor.name.size() > kGgufLongestTensorName) {
    return unwritable(name + ", a name of " + std::to_string(tensor.name.size()) + " bytes,");
  }
  if (tensor.shape.empty() || tensor.shape.size() > kGgufMaxDims) {
    return unwritable(name + " with " + std::to_string(tensor.shape.size()) + " dimensions");
  }
  for (const int64_t dim : tensor.shape) {
    if (dim <= 0) return unwritable(name + " with a dimension of " + std::to_string(dim));
  }
  auto bytes = format_row_bytes(tensor.format, static_cast<uint64_t>(tensor.shape.back()));
  if (!bytes) {
    return unwritable(name + " with rows of " + std::to_string(tensor.shape.back()) +
                      " weights of " + std::string(format_traits(tensor.format).name));
  }
  for (size_t i = 0; i + 1 < tensor.shape.size() && bytes; ++i) {
    bytes = checked_mul(*bytes, static_cast<uint64_t>(tensor.shape[i]));
  }
  if (!bytes) return unwritable(name + " of more bytes than 64 bits can count");
  return *bytes;
}

/// A file's bytes before its data, and where the data lies.
struct Layout {
  std::string head;             ///< padded: the data section begins behind it
  std::vector<uint64_t> bytes;  ///< of each tensor
  uint64_t total_bytes = 0;
};

uint64_t padding_after(uint64_t bytes) {
  return (kAlignment - bytes % kAlignment) % kAlignment;
}

Result<std::string> pairs_of(const Metadata& metadata, uint64_t& num_pairs) {
  std::string out;
  for (const auto& [key, value] : metadata.values()) {
    if (key == kAlignmentKey) continue;
    HEADRACE_TRY(check_key(key));
    ++num_pairs;
    put_string(out, key);
    std::visit(ValueWriter{out, key}, value);
  }
  return out;
}

Result<Layout> make_layout(const Metadata& metadata, std::span<const GgufTensorPlan> tensors) {
  Layout layout;
  uint64_t num_pairs = 0;
  HEADRACE_ASSIGN(const std::string pairs, pairs_of(metadata, num_pairs));
  std::string records;
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const GgufTensorPlan& tensor : tensors) {
    HEADRACE_ASSIGN(const uint64_t bytes, checked_bytes(tensor));
    if (!names.insert(tensor.name).second) {
      return unwritable("tensor " + quote_name(tensor.name) + " twice");
    }
    put_string(records, tensor.name);
    put_number(records, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) put_number(records, tensor.shape[i]);
    put_number(records, format_traits(tensor.format).ggml_type);
    put_number(records, offset);
    layout.bytes.push_back(bytes);
    const auto end = checked_add(offset, bytes);
    const auto next = end ? checked_align_up(*end, kAlignment) : std::nullopt;
    if (!next) return unwritable("more data than 64 bits can count");
    offset = *next;
  }
  layout.head = "GGUF";
  put_number(layout.head, uint32_t{3});
  put_number(layout.head, static_cast<uint64_t>(tensors.size()));
  put_number(layout.head, num_pairs);
  layout.head += pairs + records;
  if (!tensors.empty()) layout.head.append(padding_after(layout.head.size()), '\0');
  const auto total = checked_add<uint64_t>(layout.head.size(), offset);
  if (!total) return unwritable("more data than 64 bits can count");
  layout.total_bytes = *total;
  return layout;
}

Result<void> write_tensor(AtomicFile& file, size_t index, uint64_t bytes, GgufData data) {
  uint64_t written = 0;
  const auto put = [&](std::span<const std::byte> part) -> Result<void> {
    written += part.size();
    HEADRACE_CHECK_LE(written, bytes);
    return file.write(part);
  };
  HEADRACE_TRY(data(index, put));
  HEADRACE_CHECK_EQ(written, bytes);
  constexpr std::array<std::byte, kAlignment> kZeros = {};
  return file.write(std::span(kZeros).first(padding_after(bytes)));
}

}  // namespace

Result<uint64_t> gguf_file_bytes(const Metadata& metadata,
                                 std::span<const GgufTensorPlan> tensors) {
  HEADRACE_ASSIGN(const Layout layout, make_layout(metadata, tensors));
  return layout.total_bytes;
}

Result<void> write_gguf(const std::string& path, const Metadata& metadata,
                        std::span<const GgufTensorPlan> tensors, GgufData data) {
  HEADRACE_ASSIGN(const Layout layout, make_layout(metadata, tensors));
  HEADRACE_TRY(expect_disk_room(path, layout.total_bytes));
  HEADRACE_ASSIGN(AtomicFile file, AtomicFile::create_beside(path));
  HEADRACE_TRY(file.write(std::as_bytes(std::span(layout.head))));
  for (size_t i = 0; i < tensors.size(); ++i) {
    HEADRACE_TRY(write_tensor(file, i, layout.bytes[i], data));
  }
  return file.commit(path);
}

}  // namespace headrace
