// Memory in large pages: fewer misses of the address translation where much is read once.
#pragma once

#include <cstddef>

namespace headrace {

/// Asks the system to back [begin, begin + size) with large pages (2 MiB on x86-64) as far as whole
/// ones lie inside. Best before the memory is first touched. A hint, never an error.
void advise_large_pages(void* begin, size_t size);

}  // namespace headrace
