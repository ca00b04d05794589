// See digest.h.
#include "api/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace headrace::api {

Digest digest_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum;
  unsigned size = 0;
  HEADRACE_CHECK_EQ(EVP_Digest(text.data(), text.size(), sum.data(), &size, EVP_sha256(), nullptr),
                    1);
  Digest digest;
  std::copy_n(sum.begin(), digest.size(), digest.begin());
  return digest;
}

std::string hex_of(const Digest& digest) {
  std::string out;
  for (const uint8_t byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

std::optional<Digest> digest_of_hex(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < hex.size(); ++i) {
    const size_t value = std::string_view("0123456789abcdef").find(hex[i]);
    if (value == std::string_view::npos) return std::nullopt;
    digest[i / 2] = static_cast<uint8_t>((digest[i / 2] << 4) | value);
  }
  return digest;
}

bool DigestSet::insert(const Digest& digest) {
  if (4 * (size_ + 1) > 3 * places_.size()) grow();
  const size_t place = place_of(digest);
  if (taken_[place]) return false;
  places_[place] = digest;
  taken_[place] = true;
  ++size_;
  return true;
}

size_t DigestSet::place_of(const Digest& digest) const {
  uint64_t begin = 0;
  std::memcpy(&begin, digest.data(), sizeof begin);
  const size_t mask = places_.size() - 1;
  size_t place = begin & mask;
  while (taken_[place] && places_[place] != digest) place = (place + 1) & mask;
  return place;
}

void DigestSet::grow() {
  std::vector<Digest> places(std::max<size_t>(64, 2 * places_.size()));
  std::vector<bool> taken(places.size(), false);
  places.swap(places_);
  taken.swap(taken_);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!taken[i]) continue;
    const size_t place = place_of(places[i]);
    places_[place] = places[i];
    taken_[place] = true;
  }
}

}  // namespace headrace::api
