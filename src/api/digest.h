// 128 bits that stand for a text, and sets of them: for files too large to remember. Must not know
// what the texts are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::api {

/// The beginning of a SHA-256 sum. Two texts of one digest do not occur.
using Digest = std::array<uint8_t, 16>;

Digest digest_of(std::string_view text);
/// 32 lower-case digits.
std::string hex_of(const Digest& digest);
std::optional<Digest> digest_of_hex(std::string_view hex);

/// Grows to at most 43 bytes a digest, while growing to half as much again.
class DigestSet {
 public:
  /// False if it was there already.
  bool insert(const Digest& digest);
  size_t size() const { return size_; }

 private:
  void grow();
  /// Of the digest, or of the free place for it.
  size_t place_of(const Digest& digest) const;

  std::vector<Digest> places_;  ///< a power of two of them, at most three quarters taken
  std::vector<bool> taken_;
  size_t size_ = 0;
};

}  // namespace headrace::api
