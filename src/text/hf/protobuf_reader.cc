// See protobuf_reader.h.
#include "text/hf/protobuf_reader.h"

#include <string>

namespace headrace::text {

Error ProtobufReader::bad(size_t offset, std::string_view what) const {
  return Error{ErrorCode::corrupt_data,
               std::string(what) + " at byte " + std::to_string(offset) + " of " +
                   std::to_string(message_.size()),
               "", ""};
}

bool ProtobufReader::read_varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 70 && at_ < message_.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message_[at_++]);
    if (shift < 64) value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

Result<std::optional<ProtobufField>> ProtobufReader::next() {
  if (at_ == message_.size()) return std::optional<ProtobufField>();
  ProtobufField field;
  field.offset = at_;
  uint64_t tag = 0;
  if (!read_varint(tag)) return bad(field.offset, "expected a field, found no whole number");
  if (tag >> 3 == 0 || tag >> 32 != 0) return bad(field.offset, "expected a field's number");
  field.number = static_cast<uint32_t>(tag >> 3);
  field.wire_type = static_cast<uint32_t>(tag & 7);
  const size_t left = message_.size() - at_;
  const auto fixed = [&](size_t size) {
    if (left < size) return false;
    for (size_t i = size; i-- > 0;) {
      field.value = (field.value << 8) | static_cast<unsigned char>(message_[at_ + i]);
    }
    at_ += size;
    return true;
  };
  bool whole = true;
  if (field.wire_type == 0) {
    whole = read_varint(field.value);
  } else if (field.wire_type == 1) {
    whole = fixed(8);
  } else if (field.wire_type == 5) {
    whole = fixed(4);
  } else if (field.wire_type == 2) {
    uint64_t size = 0;
    whole = read_varint(size) && size <= message_.size() - at_;
    if (whole) {
      field.bytes = message_.substr(at_, size);
      at_ += size;
    }
  } else {
    return bad(field.offset,
               "expected wire type 0, 1, 2 or 5, found " + std::to_string(field.wire_type));
  }
  if (!whole) {
    return bad(field.offset, "field " + std::to_string(field.number) + " runs past the end");
  }
  return std::optional<ProtobufField>(field);
}

}  // namespace headrace::text
