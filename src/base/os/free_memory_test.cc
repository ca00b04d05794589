#include "base/os/free_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace headrace {
namespace {

/// Of this process, in bytes; 0 where the system does not say.
size_t resident_bytes() {
  size_t all = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096;
}

TEST(FreeMemory, IsGivenBack) {
#if !defined(__GLIBC__) || defined(HEADRACE_SANITIZED)
  GTEST_SKIP() << "another allocator";
#endif
  constexpr size_t kBytes = 1000;
  constexpr size_t kNum = 100'000;
  std::vector<std::unique_ptr<char[]>> parts(kNum);
  for (auto& each : parts) {
    each = std::make_unique<char[]>(kBytes);
    std::memset(each.get(), 1, kBytes);
  }
  const size_t full = resident_bytes();
  if (full == 0) GTEST_SKIP() << "nobody tells";
  // The last one keeps the allocator from shortening the heap by itself.
  for (size_t i = 0; i + 1 < kNum; ++i) parts[i].reset();
  give_back_freed_memory();
  EXPECT_LT(resident_bytes() + kNum * kBytes / 2, full);
}

}  // namespace
}  // namespace headrace
