// Where packed weights lie: chunks of memory in large pages that matrices share, since a decode
// step reads all of them once and most matrices are smaller than a large page. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>

namespace headrace {

class WeightMemory {
 public:
  /// `bytes` of memory at a multiple of 64, its contents undefined; kept by its owner, whether this
  /// object is still there or not. Throws std::bad_alloc.
  std::shared_ptr<std::byte> allocate(size_t bytes);

 private:
  std::shared_ptr<std::byte> chunk_;
  size_t used_ = 0;
};

}  // namespace headrace
