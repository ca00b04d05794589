// See pin_thread.h.
#include "base/os/pin_thread.h"

#include <pthread.h>
#include <sched.h>

#include <vector>

namespace headrace {
namespace {

/// The processors of this thread's mask, in order.
std::vector<int> allowed_processors() {
  std::vector<int> processors;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
#endif
  return processors;
}

}  // namespace

int processors_of_this_thread() {
  return static_cast<int>(allowed_processors().size());
}

bool pin_this_thread(int index) {
  static const std::vector<int> processors = allowed_processors();
  if (processors.empty() || index < 0) return false;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processors[static_cast<size_t>(index) % processors.size()], &set);
  return ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set) == 0;
#else
  return false;
#endif
}

}  // namespace headrace
