// See thread_time.h.
#include "base/os/thread_time.h"

#include <ctime>

namespace headrace {

std::chrono::nanoseconds thread_time() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace headrace
