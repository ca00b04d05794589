// The threads that a benchmark of the backend runs on.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/os/system_limits.h"

namespace headrace {

/// HEADRACE_THREADS, else the processors this process may use.
inline int num_threads() {
  int n = usable_processors();
  if (const char* set = std::getenv("HEADRACE_THREADS")) {
    const std::string_view text(set);
    std::from_chars(text.data(), text.data() + text.size(), n);
  }
  return n;
}

}  // namespace headrace
