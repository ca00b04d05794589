// See free_memory.h.
#include "base/os/free_memory.h"

#include <atomic>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace headrace {

void give_back_freed_memory() {
#ifdef __GLIBC__
  static std::atomic_flag is_under_way;
  if (is_under_way.test_and_set()) return;
  malloc_trim(0);
  is_under_way.clear();
#endif
}

void keep_little_freed_memory() {
#ifdef __GLIBC__
  constexpr int kBytes = 4 << 20;
  mallopt(M_MMAP_THRESHOLD, kBytes);
  mallopt(M_TRIM_THRESHOLD, kBytes);
#endif
}

}  // namespace headrace
