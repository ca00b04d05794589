// How much memory the reading of one model's metadata may take: the guard against a small file that
// makes a large structure.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/result.h"

namespace headrace {

class HeapBudget {
 public:
  /// Twice what the largest vocabularies in use (262 144 tokens with scores, types and half a
  /// million merges) need. With a copy of the largest array, as the getters of Metadata make one, a
  /// hostile file still takes less than its own size plus 64 MiB.
  static constexpr uint64_t kDefaultBytes = uint64_t{30} << 20;

  explicit HeapBudget(uint64_t bytes = kDefaultBytes) : total_bytes_(bytes), left_bytes_(bytes) {}

  /// Books `count` things of `each_bytes`. Error: resource_exhausted; then nothing is booked.
  Result<void> take(uint64_t count, uint64_t each_bytes) {
    if (each_bytes != 0 && count > left_bytes_ / each_bytes) {
      return Error{ErrorCode::resource_exhausted,
                   "needs more memory than the " + std::to_string(total_bytes_ >> 20) +
                       " MiB that a file's metadata may take",
                   "", ""};
    }
    left_bytes_ -= count * each_bytes;
    return {};
  }

 private:
  uint64_t total_bytes_;
  uint64_t left_bytes_;
};

}  // namespace headrace
