// A writer of small GGUF files for tests and fuzz seeds. It checks nothing, so that broken files
// can be made too. Layout: the GGUF specification (header, key-value pairs, tensor records, data).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace headrace::test {

/// GGUF's value type numbers.
enum class GgufType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

/// What a field of the built file is, so that mutants can aim at it.
enum class GgufField {
  version,
  tensor_count,
  kv_count,
  key_length,
  value_type,
  array_type,
  array_count,
  string_length,
  alignment,
  num_dims,
  dim,
  tensor_type,
  tensor_offset
};

struct GgufFieldPlace {
  GgufField field;
  size_t offset;  ///< byte of the file
  size_t size;    ///< 4 or 8 bytes, little-endian
};

/// The GGUF type of a C++ type.
template <class T>
constexpr GgufType gguf_type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return GgufType::boolean;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return GgufType::u8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return GgufType::i8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return GgufType::u16;
  else if constexpr (std::is_same_v<T, int16_t>)
    return GgufType::i16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return GgufType::u32;
  else if constexpr (std::is_same_v<T, int32_t>)
    return GgufType::i32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return GgufType::u64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return GgufType::i64;
  else if constexpr (std::is_same_v<T, float>)
    return GgufType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return GgufType::f64;
  else
    return GgufType::string;
}

/// Collects pairs and tensors, then writes the file:
///   GgufBuilder file;
///   file.add("general.architecture", "llama").add("llama.block_count", uint32_t{2});
///   file.add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
///   file.add_f32("token_embd.weight", {2, 4}, floats);
///   file.write(path);
class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  /// A number or bool, of exactly this C++ type.
  template <class T>
  requires std::is_arithmetic_v<T> GgufBuilder& add(std::string_view key, T value) {
    begin_pair(key, gguf_type_of<T>());
    if (key == "general.alignment") mark(pairs_, GgufField::alignment, sizeof(T));
    put(pairs_.bytes, value);
    return *this;
  }

  GgufBuilder& add(std::string_view key, std::string_view value) {
    begin_pair(key, GgufType::string);
    put_string(pairs_, value, GgufField::string_length);
    return *this;
  }
  GgufBuilder& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }

  /// An array of numbers, bools or strings.
  template <class T>
  GgufBuilder& add(std::string_view key, const std::vector<T>& values) {
    begin_pair(key, GgufType::array);
    put_array(values);
    return *this;
  }

  /// An array of arrays.
  template <class T>
  GgufBuilder& add(std::string_view key, const std::vector<std::vector<T>>& values) {
    begin_pair(key, GgufType::array);
    put_array_head(GgufType::array, values.size());
    for (const std::vector<T>& inner : values) put_array(inner);
    return *this;
  }

  /// A pair of any type number with any bytes.
  GgufBuilder& add_raw(std::string_view key, uint32_t type, std::string_view bytes) {
    begin_pair(key, static_cast<GgufType>(type));
    pairs_.bytes += bytes;
    return *this;
  }

  /// A tensor of any type number. `shape` has the outermost dimension first ({rows, cols}), as
  /// CheckpointTensor has. The data is placed at the next multiple of the alignment.
  GgufBuilder& add_tensor(std::string_view name, uint32_t ggml_type,
                          const std::vector<int64_t>& shape, std::string_view data) {
    data_.resize(align_up(data_.size()));
    add_tensor_record(name, ggml_type, shape, data_.size());
    data_ += data;
    return *this;
  }

  /// An F32 tensor; `values` has as many floats as the shape says.
  GgufBuilder& add_f32(std::string_view name, const std::vector<int64_t>& shape,
                       std::span<const float> values) {
    const auto* bytes = reinterpret_cast<const char*>(values.data());
    return add_tensor(name, 0, shape, std::string_view(bytes, values.size_bytes()));
  }

  /// Only the record of a tensor, at any offset into the data.
  GgufBuilder& add_tensor_record(std::string_view name, uint32_t ggml_type,
                                 const std::vector<int64_t>& shape, uint64_t offset) {
    put_string(records_, name, GgufField::key_length);
    mark(records_, GgufField::num_dims, 4);
    put(records_.bytes, static_cast<uint32_t>(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) {
      mark(records_, GgufField::dim, 8);
      put(records_.bytes, shape[i]);
    }
    mark(records_, GgufField::tensor_type, 4);
    put(records_.bytes, ggml_type);
    mark(records_, GgufField::tensor_offset, 8);
    put(records_.bytes, offset);
    ++num_tensors_;
    return *this;
  }

  /// Bytes appended to the data as they are.
  GgufBuilder& add_data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  /// Where tensors start (a power of two, default 32); writes `general.alignment`. Call it before
  /// the first tensor.
  GgufBuilder& set_alignment(uint32_t alignment) {
    alignment_ = alignment;
    return add("general.alignment", alignment);
  }

  /// The file. `fields`, if given, receives where its structural fields lie.
  std::string build(std::vector<GgufFieldPlace>* fields = nullptr) const {
    std::string out = "GGUF";
    put(out, version_);
    put(out, num_tensors_);
    put(out, num_pairs_);
    if (fields != nullptr) {
      *fields = {{GgufField::version, 4, 4},
                 {GgufField::tensor_count, 8, 8},
                 {GgufField::kv_count, 16, 8}};
    }
    for (const Section* section : {&pairs_, &records_}) {
      if (fields != nullptr) {
        for (GgufFieldPlace place : section->fields) {
          place.offset += out.size();
          fields->push_back(place);
        }
      }
      out += section->bytes;
    }
    if (!data_.empty()) out.resize(align_up(out.size()));
    return out + data_;
  }

  /// Writes build() to a file.
  void write(const std::string& path) const {
    const std::string bytes = build();
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  struct Section {
    std::string bytes;
    std::vector<GgufFieldPlace> fields;  ///< offsets from the section's begin
  };

  template <class T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  static void mark(Section& section, GgufField field, size_t size) {
    section.fields.push_back({field, section.bytes.size(), size});
  }

  static void put_string(Section& section, std::string_view text, GgufField length_field) {
    mark(section, length_field, 8);
    put(section.bytes, static_cast<uint64_t>(text.size()));
    section.bytes += text;
  }

  void begin_pair(std::string_view key, GgufType type) {
    put_string(pairs_, key, GgufField::key_length);
    mark(pairs_, GgufField::value_type, 4);
    put(pairs_.bytes, static_cast<uint32_t>(type));
    ++num_pairs_;
  }

  void put_array_head(GgufType type, size_t count) {
    mark(pairs_, GgufField::array_type, 4);
    put(pairs_.bytes, static_cast<uint32_t>(type));
    mark(pairs_, GgufField::array_count, 8);
    put(pairs_.bytes, static_cast<uint64_t>(count));
  }

  template <class T>
  void put_array(const std::vector<T>& values) {
    put_array_head(gguf_type_of<T>(), values.size());
    for (const T& value : values) {
      if constexpr (std::is_arithmetic_v<T>) {
        put(pairs_.bytes, static_cast<T>(value));
      } else {
        put_string(pairs_, value, GgufField::string_length);
      }
    }
  }

  size_t align_up(size_t size) const { return (size + alignment_ - 1) / alignment_ * alignment_; }

  uint32_t version_;
  uint32_t alignment_ = 32;
  uint64_t num_tensors_ = 0;
  uint64_t num_pairs_ = 0;
  Section pairs_;
  Section records_;
  std::string data_;
};

}  // namespace headrace::test
