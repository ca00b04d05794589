// See pull_hooks.h.
#include "store/pull_hooks.h"

#include "base/os/atomic_file.h"

namespace headrace {
namespace {

constexpr uint64_t kSpareBytes = 16 << 20;

}  // namespace

Result<void> check_disk_room(const std::string& folder, uint64_t needed_bytes,
                             const PullOptions& options, const std::string& variable) {
  const uint64_t needed = needed_bytes + kSpareBytes;
  HEADRACE_ASSIGN(const uint64_t free,
                  options.free_bytes ? options.free_bytes(folder) : free_disk_bytes(folder));
  if (free >= needed) return {};
  return Error{ErrorCode::resource_exhausted,
               "not enough room on the disk: " + std::to_string((needed + 999'999) / 1'000'000) +
                   " MB needed, " + std::to_string(free / 1'000'000) + " MB free",
               folder, "free some space, or set " + variable + " to a folder on another disk"};
}

}  // namespace headrace
