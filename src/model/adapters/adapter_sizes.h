// How large what adapters add is at the most: what a step needs memory for. Must not know how that
// is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "model/adapters/adapter.h"

namespace headrace {

struct AdapterSizes {
  int64_t largest_rank = 0;  ///< 0: nothing is added
  int64_t most_outputs = 0;  ///< of a product of all rows
  int64_t most_logits = 0;   ///< of one of the rows with logits; 0: there is none

  /// That a product of so many outputs may get something of this rank added; it has the rows with
  /// logits, or all.
  void expect(int64_t rank, int64_t outputs, bool makes_logits) {
    largest_rank = std::max(largest_rank, rank);
    int64_t& most = makes_logits ? most_logits : most_outputs;
    most = std::max(most, outputs);
  }
};

/// At the most, before they are loaded.
AdapterSizes adapter_sizes_of(std::span<const Adapter> adapters);

/// Bytes of an AdapterMemory's buffers after reserve(rows, logit_rows); the largest number if that
/// does not fit.
uint64_t buffer_bytes(const AdapterSizes& sizes, int64_t rows, int64_t logit_rows);

}  // namespace headrace
