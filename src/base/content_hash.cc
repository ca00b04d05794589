// See content_hash.h.
#include "base/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

namespace headrace {

static_assert(std::endian::native == std::endian::little);

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}

ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;
ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

void ContentHash::add_text(std::string_view text) {
  add_number(text.size());
  add(std::as_bytes(std::span(text.data(), text.size())));
}

void ContentHash::add_number(uint64_t value) {
  add(std::as_bytes(std::span(&value, 1)));
}

ContentHash::Digest ContentHash::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  Digest out;
  static_assert(sizeof(out) == sizeof(canonical));
  std::memcpy(out.data(), &canonical, sizeof(out));
  return out;
}

std::string to_hex(const ContentHash::Digest& digest) {
  std::string out;
  for (const std::byte byte : digest) {
    out += "0123456789abcdef"[std::to_integer<unsigned>(byte >> 4)];
    out += "0123456789abcdef"[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return out;
}

}  // namespace headrace
