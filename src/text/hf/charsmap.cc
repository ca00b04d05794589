// See charsmap.h.
#include "text/hf/charsmap.h"

namespace headrace::text {
namespace {

uint32_t little_endian(const char* p) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = (value << 8) | static_cast<unsigned char>(p[i]);
  return value;
}

bool has_leaf(uint32_t unit) {
  return ((unit >> 8) & 1) != 0;
}
uint32_t label(uint32_t unit) {
  return unit & ((1U << 31) | 0xFF);
}
uint32_t offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (1U << 9)) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::make(std::string_view blob) {
  const auto fail = [](std::string message) {
    return Error{ErrorCode::corrupt_data, std::move(message), "precompiled_charsmap", ""};
  };
  if (blob.size() < 4)
    return fail("expected 4 bytes or more, found " + std::to_string(blob.size()));
  const uint32_t size = little_endian(blob.data());
  if (size == 0 || size % 4 != 0 || size > blob.size() - 4) {
    return fail("expected a trie of whole units of 4 bytes within " + std::to_string(blob.size()) +
                " bytes, found one of " + std::to_string(size));
  }
  Charsmap map;
  map.blob_ = blob;
  map.texts_ = 4 + size_t{size};
  map.units_.reserve(size / 4);
  for (size_t at = 4; at < map.texts_; at += 4) {
    map.units_.push_back(little_endian(blob.data() + at));
  }
  return map;
}

Charsmap::Found Charsmap::find(std::string_view text, bool longest) const {
  Found found;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == 0) break;
    node ^= c;
    if (node >= units_.size() || label(units_[node]) != c) break;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    found = {i + 1, replacement(units_[node] & ((1U << 31) - 1))};
    if (!longest) break;
  }
  return found;
}

std::string_view Charsmap::replacement(uint32_t at) const {
  if (at >= blob_.size() - texts_) return {};
  const std::string_view rest = std::string_view(blob_).substr(texts_ + at);
  return rest.substr(0, rest.find('\0'));
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<uint32_t>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      value = static_cast<uint32_t>(c - '0') + 52;
    } else if (c == '+') {
      value = 62;
    } else if (c == '/') {
      value = 63;
    } else {
      return std::nullopt;
    }
    bits = (bits << 6) | value;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out.push_back(static_cast<char>(bits >> num_bits));
    }
  }
  return out;
}

}  // namespace headrace::text
