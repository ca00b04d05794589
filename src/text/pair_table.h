// Which pairs of tokens byte-pair encoding joins, and in what order. Owns the table.
#pragma once

#include <cstdint>
#include <vector>

#include "text/merge_engine.h"

namespace headrace::text {

/// From (left, right) to (rank, joined id), by open addressing: 16 bytes a slot.
class PairTable {
 public:
  explicit PairTable(size_t expected = 0) {
    size_t slots = 16;
    while (slots * 3 < expected * 4) slots *= 2;
    slots_.resize(slots);
  }

  /// The first entry of a pair counts. `expected` of the constructor must not be exceeded.
  void add(int32_t left, int32_t right, Joined joined) {
    Slot& slot = slots_[probe(key(left, right))];
    if (slot.key == kEmpty) slot = {key(left, right), joined};
  }
  Joined find(int32_t left, int32_t right) const { return slots_[probe(key(left, right))].joined; }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Slot {
    uint64_t key = kEmpty;
    Joined joined;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
  }
  size_t probe(uint64_t wanted) const {
    const size_t mask = slots_.size() - 1;
    const uint64_t product = wanted * 0x9E3779B97F4A7C15;
    size_t i = (product ^ (product >> 32)) & mask;
    while (slots_[i].key != wanted && slots_[i].key != kEmpty) i = (i + 1) & mask;
    return i;
  }

  std::vector<Slot> slots_;
};

}  // namespace headrace::text
