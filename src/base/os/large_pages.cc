// See large_pages.h.
#include "base/os/large_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace headrace {

void advise_large_pages(void* begin, size_t size) {
  // The advice is for whole small pages; the system itself looks for the large ones among them.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + page - 1) / page * page;
  const uintptr_t end = (address + size) / page * page;
  if (end <= first) return;
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace headrace
