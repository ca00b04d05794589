// See threads.h.
#include "base/os/threads.h"

#include <pthread.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace headrace {

void name_this_thread(const char* name) {
#if defined(__linux__)
  ::pthread_setname_np(::pthread_self(), name);
#else
  (void)name;
#endif
}

std::map<std::string, double> thread_seconds() {
  namespace fs = std::filesystem;
  std::map<std::string, double> out;
  std::error_code error;
  for (fs::directory_iterator each("/proc/self/task", error), end; !error && each != end;
       each.increment(error)) {
    std::string name;
    std::string times;  // nanoseconds run, nanoseconds waited, turns
    std::getline(std::ifstream(each->path() / "comm"), name);
    std::getline(std::ifstream(each->path() / "schedstat"), times);
    double nanoseconds = 0;
    const auto [stop, fault] =
        std::from_chars(times.data(), times.data() + times.size(), nanoseconds);
    if (fault == std::errc() && !name.empty()) out[name] += nanoseconds * 1e-9;
  }
  return out;
}

}  // namespace headrace
