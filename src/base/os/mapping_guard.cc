// See mapping_guard.h. The signal handler walks a list whose elements are never freed, only used
// again, so that it needs no lock.
#include "base/os/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

namespace headrace {

struct MappingGuard::Range {
  std::atomic<uintptr_t> begin{0};  ///< 0: not in use
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> is_cut{false};
  Range* next = nullptr;  ///< set before the element is in the list
};

namespace {

using Range = MappingGuard::Range;

std::mutex list_mutex;  // of those who write
std::atomic<Range*> list_head{nullptr};
struct sigaction previous_action {};
uintptr_t page_size = 0;

Range* find_range(uintptr_t address) {
  for (Range* range = list_head.load(); range != nullptr; range = range->next) {
    if (address >= range->begin.load() && address < range->end.load()) return range;
  }
  return nullptr;
}

/// Puts zeros where the file has no pages: from the one that was read to the end of the mapping,
/// since a file is cut at its end. One by one they might be more pieces than a process may map.
void on_bus_error(int, siginfo_t* info, void*) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Range* range = info->si_code == BUS_ADRERR ? find_range(address) : nullptr;
  if (range != nullptr) {
    const uintptr_t page = address / page_size * page_size;
    const void* made = ::mmap(reinterpret_cast<void*>(page), range->end.load() - page, PROT_READ,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (made != MAP_FAILED) {
      range->is_cut.store(true);
      errno = saved_errno;
      return;
    }
  }
  // What was there before takes over, once this handler returns.
  ::sigaction(SIGBUS, &previous_action, nullptr);
  ::raise(SIGBUS);
  errno = saved_errno;
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &previous_action);
  });
}

}  // namespace

MappingGuard::MappingGuard(const std::byte* begin, size_t size) {
  install_handler();
  const std::lock_guard lock(list_mutex);
  for (Range* range = list_head.load(); range != nullptr; range = range->next) {
    if (range->begin.load() == 0) range_ = range;
  }
  if (range_ == nullptr) {
    range_ = new Range;
    range_->next = list_head.load();
    list_head.store(range_);
  }
  range_->is_cut.store(false);
  // In this order, so that the handler never sees a range that is too large.
  range_->end.store(reinterpret_cast<uintptr_t>(begin) + size);
  range_->begin.store(reinterpret_cast<uintptr_t>(begin));
}

MappingGuard::MappingGuard(MappingGuard&& other) noexcept
    : range_(std::exchange(other.range_, nullptr)) {}

MappingGuard& MappingGuard::operator=(MappingGuard&& other) noexcept {
  std::swap(range_, other.range_);
  return *this;
}

MappingGuard::~MappingGuard() {
  if (range_ == nullptr) return;
  const std::lock_guard lock(list_mutex);
  range_->end.store(0);
  range_->begin.store(0);
}

bool MappingGuard::is_cut() const {
  return range_ != nullptr && range_->is_cut.load();
}

}  // namespace headrace
