// See gguf_value.h.
#include "checkpoint/gguf_value.h"

#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "checkpoint/gguf_array_text.h"

namespace headrace {
namespace {

/// What a C++ type is widened to.
template <class T>
using Widened = std::conditional_t<std::is_floating_point_v<T>, double,
                                   std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
Result<MetaValue> read_number(GgufCursor& cursor) {
  HEADRACE_ASSIGN(const T value, cursor.read<T>("the value"));
  return MetaValue(static_cast<Widened<T>>(value));
}

template <class T>
Result<MetaValue> read_numbers(GgufCursor& cursor, uint64_t count, HeapBudget& budget) {
  HEADRACE_ASSIGN(const auto bytes, cursor.read_bytes("the array", count, sizeof(T)));
  HEADRACE_TRY(budget.take(count, sizeof(Widened<T>)));
  std::vector<Widened<T>> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<Widened<T>>(value);
  }
  return MetaValue(std::move(values));
}

Error not_a_bool(uint64_t offset, std::byte found) {
  return Error{ErrorCode::corrupt_data,
               "a bool must be 0 or 1, found " + std::to_string(static_cast<int>(found)),
               GgufCursor::byte_place(offset), ""};
}

Result<MetaValue> read_bool(GgufCursor& cursor) {
  const uint64_t offset = cursor.offset();
  HEADRACE_ASSIGN(const auto value, cursor.read<std::byte>("the value"));
  if (value > std::byte{1}) return not_a_bool(offset, value);
  return MetaValue(value == std::byte{1});
}

Result<MetaValue> read_bools(GgufCursor& cursor, uint64_t count, HeapBudget& budget) {
  const uint64_t offset = cursor.offset();
  HEADRACE_ASSIGN(const auto bytes, cursor.read_bytes("the array", count, 1));
  // A bit each here, but get_ints makes an int64_t of it.
  HEADRACE_TRY(budget.take(count, sizeof(int64_t)));
  std::vector<bool> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (bytes[i] > std::byte{1}) return not_a_bool(offset + i, bytes[i]);
    values[i] = bytes[i] == std::byte{1};
  }
  return MetaValue(std::move(values));
}

Result<MetaValue> read_strings(GgufCursor& cursor, uint64_t count, HeapBudget& budget) {
  // Each string takes at least its length's 8 bytes: checked before anything is allocated.
  GgufCursor probe = cursor;
  HEADRACE_TRY(probe.read_bytes("the array", count, sizeof(uint64_t)));
  HEADRACE_TRY(budget.take(count, sizeof(std::string_view)));
  std::vector<std::string_view> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    auto value = cursor.read_string("the string");
    if (!value.ok()) return std::move(value).error().at("element " + std::to_string(i));
    values.push_back(*value);
  }
  return MetaValue(std::move(values));
}

Error unknown_type(uint64_t offset, uint32_t type) {
  return Error{ErrorCode::corrupt_data,
               "unknown value type " + std::to_string(type) + ", expected 0 to 12",
               GgufCursor::byte_place(offset), ""};
}

Result<MetaValue> read_array(GgufCursor& cursor, HeapBudget& budget,
                             std::deque<std::string>& texts) {
  const uint64_t offset = cursor.offset();
  HEADRACE_ASSIGN(const auto type, cursor.read<uint32_t>("the array's element type"));
  HEADRACE_ASSIGN(const auto count, cursor.read<uint64_t>("the array's length"));
  switch (static_cast<GgufType>(type)) {
    case GgufType::u8:
      return read_numbers<uint8_t>(cursor, count, budget);
    case GgufType::i8:
      return read_numbers<int8_t>(cursor, count, budget);
    case GgufType::u16:
      return read_numbers<uint16_t>(cursor, count, budget);
    case GgufType::i16:
      return read_numbers<int16_t>(cursor, count, budget);
    case GgufType::u32:
      return read_numbers<uint32_t>(cursor, count, budget);
    case GgufType::i32:
      return read_numbers<int32_t>(cursor, count, budget);
    case GgufType::f32:
      return read_numbers<float>(cursor, count, budget);
    case GgufType::boolean:
      return read_bools(cursor, count, budget);
    case GgufType::string:
      return read_strings(cursor, count, budget);
    case GgufType::u64:
      return read_numbers<uint64_t>(cursor, count, budget);
    case GgufType::i64:
      return read_numbers<int64_t>(cursor, count, budget);
    case GgufType::f64:
      return read_numbers<double>(cursor, count, budget);
    case GgufType::array: {
      HEADRACE_ASSIGN(std::string text, read_gguf_array_text(cursor, count));
      HEADRACE_TRY(budget.take(1, text.size() + 64));
      texts.push_back(std::move(text));
      return MetaValue(std::string_view(texts.back()));
    }
  }
  return unknown_type(offset, type);
}

}  // namespace

Result<MetaValue> read_gguf_value(GgufCursor& cursor, uint32_t type, HeapBudget& budget,
                                  std::deque<std::string>& texts) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::u8:
      return read_number<uint8_t>(cursor);
    case GgufType::i8:
      return read_number<int8_t>(cursor);
    case GgufType::u16:
      return read_number<uint16_t>(cursor);
    case GgufType::i16:
      return read_number<int16_t>(cursor);
    case GgufType::u32:
      return read_number<uint32_t>(cursor);
    case GgufType::i32:
      return read_number<int32_t>(cursor);
    case GgufType::f32:
      return read_number<float>(cursor);
    case GgufType::boolean:
      return read_bool(cursor);
    case GgufType::string: {
      HEADRACE_ASSIGN(const auto text, cursor.read_string("the string"));
      return MetaValue(text);
    }
    case GgufType::array:
      return read_array(cursor, budget, texts);
    case GgufType::u64:
      return read_number<uint64_t>(cursor);
    case GgufType::i64:
      return read_number<int64_t>(cursor);
    case GgufType::f64:
      return read_number<double>(cursor);
  }
  return unknown_type(cursor.offset() - sizeof type, type);
}

}  // namespace headrace
