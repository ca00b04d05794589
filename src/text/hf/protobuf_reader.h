// Reads the wire form of Protocol Buffers, field by field. Owns nothing: it points into the bytes.
// Must not know any message. The form: protobuf.dev, "Encoding".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headrace/result.h"

namespace headrace::text {

/// One field of a message.
struct ProtobufField {
  uint32_t number = 0;
  uint32_t wire_type = 0;  ///< 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
  uint64_t value = 0;      ///< of a number
  std::string_view bytes;  ///< of wire type 2
  size_t offset = 0;       ///< where the field begins
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : message_(message) {}

  /// The next field, nothing at the end. Error (corrupt_data): a field that runs past the end, a
  /// varint of more than ten bytes, a wire type or a number that there is not.
  Result<std::optional<ProtobufField>> next();

 private:
  bool read_varint(uint64_t& value);
  Error bad(size_t offset, std::string_view what) const;

  std::string_view message_;
  size_t at_ = 0;
};

}  // namespace headrace::text
