// Many short byte strings in one block of memory, and the way from a string to its number. Owns
// the bytes. Must not know tokens.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::text {

/// A 64-bit hash by folded 128-bit multiplication, eight bytes a step. For tables only: it may
/// change, and does not withstand an attacker who picks the strings.
inline uint64_t hash_bytes(const char* p, size_t n) {
  const auto fold = [](uint64_t a, uint64_t b) {
    const auto wide = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(wide) ^ static_cast<uint64_t>(wide >> 64);
  };
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  constexpr uint64_t kMix = 0xD6E8FEB86659FD93;
  uint64_t state = kOdd ^ n;
  while (n > 8) {
    uint64_t part;
    std::memcpy(&part, p, 8);
    state = fold(state ^ part, kMix);
    p += 8;
    n -= 8;
  }
  uint64_t last = 0;
  if (n >= 4) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    last = (uint64_t{high} << 32) | low;
  } else if (n > 0) {
    const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(p[i])}; };
    last = byte(0) | (byte(n / 2) << 8) | (byte(n - 1) << 16);
  }
  return fold(state ^ last, kOdd);
}

/// Strings by number, back to back. At most 4 GiB of bytes in all.
class StringPool {
 public:
  void reserve(size_t num_strings, size_t num_bytes) {
    ends_.reserve(num_strings);
    bytes_.reserve(num_bytes);
  }
  void add(std::string_view text) {
    bytes_.append(text);
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  size_t size() const { return ends_.size(); }
  size_t num_bytes() const { return bytes_.size(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

/// From a string to its number in a StringPool, by open addressing. The pool is passed to each
/// call and must be the same.
class StringIndex {
 public:
  explicit StringIndex(size_t expected = 0) {
    size_t slots = 16;
    while (slots < expected + expected / 2) slots *= 2;
    slots_.resize(slots);
  }

  /// False, and no change, if an equal string is in the index.
  bool insert(const StringPool& pool, uint32_t number) {
    if ((used_ + 1) * 4 > slots_.size() * 3) grow(pool);
    const std::string_view text = pool[number];
    const uint64_t hash = hash_bytes(text.data(), text.size());
    Slot* slot = probe(pool, text, hash);
    if (slot->number >= 0) return false;
    *slot = {static_cast<uint32_t>(hash >> 32), static_cast<int32_t>(number)};
    ++used_;
    return true;
  }

  /// The number, or -1.
  int32_t find(const StringPool& pool, std::string_view text) const {
    return find(pool, text, hash_bytes(text.data(), text.size()));
  }
  int32_t find(const StringPool& pool, std::string_view text, uint64_t hash) const {
    return const_cast<StringIndex*>(this)->probe(pool, text, hash)->number;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t number = -1;
  };

  Slot* probe(const StringPool& pool, std::string_view text, uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.number < 0) return &slot;
      if (slot.tag == tag && pool[static_cast<size_t>(slot.number)] == text) return &slot;
    }
  }

  void grow(const StringPool& pool) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number < 0) continue;
      const std::string_view text = pool[static_cast<size_t>(slot.number)];
      *probe(pool, text, hash_bytes(text.data(), text.size())) = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace headrace::text
