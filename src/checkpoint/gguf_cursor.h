// Reads little-endian values from a byte range and never past its end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as little-endian");

/// The way out where a file ends before what it announces.
inline constexpr const char* kCutShortHint = "the file may be cut short: fetch it again";

class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> file) : file_(file) {}

  uint64_t offset() const { return offset_; }
  uint64_t bytes_left() const { return file_.size() - offset_; }
  uint64_t file_bytes() const { return file_.size(); }

  /// The next sizeof(T) bytes as a T. `what` names it in the error ("the array's length").
  template <class T>
  Result<T> read(std::string_view what) {
    if (bytes_left() < sizeof(T)) return ends_inside(what, sizeof(T));
    T value;
    std::memcpy(&value, file_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  /// A string: 64-bit length, then the bytes, which stay in the file. Longer than `limit` is an
  /// error.
  Result<std::string_view> read_string(std::string_view what, uint64_t limit = ~uint64_t{0}) {
    const uint64_t begin = offset_;
    HEADRACE_ASSIGN(const auto length, read<uint64_t>(what));
    if (length > bytes_left()) {
      Error error = too_long(what, begin, length, bytes_left(), "are left");
      error.hint = kCutShortHint;
      return error;
    }
    if (length > limit) return too_long(what, begin, length, limit, "are allowed");
    const auto* text = reinterpret_cast<const char*>(file_.data() + offset_);
    offset_ += length;
    return std::string_view(text, length);
  }

  /// The next `count * each_bytes` bytes.
  Result<std::span<const std::byte>> read_bytes(std::string_view what, uint64_t count,
                                                uint64_t each_bytes) {
    if (count > bytes_left() / each_bytes) {
      return Error{ErrorCode::corrupt_data,
                   std::string(what) + " has " + std::to_string(count) + " elements of " +
                       std::to_string(each_bytes) + " bytes or more, but only " +
                       std::to_string(bytes_left()) + " bytes are left",
                   byte_place(offset_), kCutShortHint};
    }
    const auto bytes = file_.subspan(offset_, count * each_bytes);
    offset_ += bytes.size();
    return bytes;
  }

  /// "byte 123", as errors name a place.
  static std::string byte_place(uint64_t offset) { return "byte " + std::to_string(offset); }

 private:
  Error ends_inside(std::string_view what, uint64_t need) const {
    return Error{ErrorCode::corrupt_data,
                 "the file ends inside " + std::string(what) + ": expected " +
                     std::to_string(need) + " bytes, found " + std::to_string(bytes_left()),
                 byte_place(offset_), kCutShortHint};
  }

  static Error too_long(std::string_view what, uint64_t offset, uint64_t length, uint64_t limit,
                        std::string_view limit_is) {
    return Error{ErrorCode::corrupt_data,
                 std::string(what) + " is " + std::to_string(length) + " bytes long, but only " +
                     std::to_string(limit) + " " + std::string(limit_is),
                 byte_place(offset), ""};
  }

  std::span<const std::byte> file_;
  uint64_t offset_ = 0;
};

}  // namespace headrace
