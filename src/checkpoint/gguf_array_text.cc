// See gguf_array_text.h.
#include "checkpoint/gguf_array_text.h"

#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "checkpoint/gguf_value.h"
#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

constexpr size_t kLongestText = 1000;

bool is_full(const std::string& out) {
  return out.size() > kLongestText;
}

// Walks arrays of arrays; the recursion is bounded by kGgufDeepestArray.
class ArrayTextReader {
 public:
  explicit ArrayTextReader(GgufCursor& cursor) : cursor_(cursor) {}

  Result<void> read_arrays(uint64_t count, int depth) {
    if (depth > kGgufDeepestArray) {
      return Error{ErrorCode::corrupt_data,
                   "arrays are nested more than " + std::to_string(kGgufDeepestArray) + " deep",
                   GgufCursor::byte_place(cursor_.offset()), ""};
    }
    return read_list(count, [&] { return read_array(depth + 1); });
  }

  std::string take_text() {
    if (is_full(text_)) text_.replace(kLongestText, std::string::npos, "...");
    text_.shrink_to_fit();
    return std::move(text_);
  }

 private:
  Result<void> read_array(int depth) {
    const uint64_t offset = cursor_.offset();
    HEADRACE_ASSIGN(const auto type, cursor_.read<uint32_t>("the array's element type"));
    HEADRACE_ASSIGN(const auto count, cursor_.read<uint64_t>("the array's length"));
    switch (static_cast<GgufType>(type)) {
      case GgufType::u8:
        return read_numbers<uint8_t>(count);
      case GgufType::i8:
        return read_numbers<int8_t>(count);
      case GgufType::u16:
        return read_numbers<uint16_t>(count);
      case GgufType::i16:
        return read_numbers<int16_t>(count);
      case GgufType::u32:
        return read_numbers<uint32_t>(count);
      case GgufType::i32:
        return read_numbers<int32_t>(count);
      case GgufType::f32:
        return read_numbers<float>(count);
      case GgufType::boolean:
        return read_numbers<uint8_t>(count);
      case GgufType::string:
        return read_list(count, [&] { return read_string(); });
      case GgufType::array:
        return read_arrays(count, depth);
      case GgufType::u64:
        return read_numbers<uint64_t>(count);
      case GgufType::i64:
        return read_numbers<int64_t>(count);
      case GgufType::f64:
        return read_numbers<double>(count);
    }
    return Error{ErrorCode::corrupt_data,
                 "unknown value type " + std::to_string(type) + ", expected 0 to 12",
                 GgufCursor::byte_place(offset), ""};
  }

  template <class T>
  Result<void> read_numbers(uint64_t count) {
    HEADRACE_ASSIGN(const auto bytes, cursor_.read_bytes("the array", count, sizeof(T)));
    if (is_full(text_)) return {};
    text_ += '[';
    for (uint64_t i = 0; i < count && !is_full(text_); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      if (i != 0) text_ += ", ";
      append_number(value);
    }
    text_ += ']';
    return {};
  }

  template <class T>
  void append_number(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.9g", static_cast<double>(value));
      text_ += digits;
    } else {
      text_ += std::to_string(value);
    }
  }

  Result<void> read_string() {
    HEADRACE_ASSIGN(const auto value, cursor_.read_string("the string"));
    if (!is_full(text_)) text_ += quote_name(value);
    return {};
  }

  /// "[a, b]": calls `read_one` for each element; every element takes at least 8 bytes of the file.
  template <class ReadOne>
  Result<void> read_list(uint64_t count, ReadOne read_one) {
    GgufCursor probe = cursor_;
    HEADRACE_TRY(probe.read_bytes("the array", count, sizeof(uint64_t)));
    if (!is_full(text_)) text_ += '[';
    for (uint64_t i = 0; i < count; ++i) {
      if (i != 0 && !is_full(text_)) text_ += ", ";
      HEADRACE_TRY(read_one());
    }
    if (!is_full(text_)) text_ += ']';
    return {};
  }

  GgufCursor& cursor_;
  std::string text_;
};

}  // namespace

Result<std::string> read_gguf_array_text(GgufCursor& cursor, uint64_t count) {
  ArrayTextReader reader(cursor);
  HEADRACE_TRY(reader.read_arrays(count, 1));
  return reader.take_text();
}

}  // namespace headrace
