// A hash of 128 bits of what is read or written piece by piece: tells damage and differences, and
// is no defence against who forges. Must not know what is hashed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// XXH3 of 128 bits, xxHash 0.8, without a seed.
class ContentHash {
 public:
  /// Bytes as xxHash writes a hash: the most significant first.
  using Digest = std::array<std::byte, 16>;

  /// Throws std::bad_alloc.
  ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  void add(std::span<const std::byte> bytes);
  /// Its length too, so that no end of one text can pass for the beginning of the next.
  void add_text(std::string_view text);
  /// Eight bytes, little-endian.
  void add_number(uint64_t value);

  /// Of all that was added so far.
  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 32 hexadecimal digits.
std::string to_hex(const ContentHash::Digest& digest);

}  // namespace headrace
