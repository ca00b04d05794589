// A folder for the unfinished work of one pull, below ROOT/.pull, and the lock that goes with it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/os/file_lock.h"
#include "headrace/result.h"
#include "store/pull_hooks.h"

namespace headrace {

/// Goes away with its owner.
class WorkFolder {
 public:
  /// Empties what a killed pull left of it. Errors: io_error.
  static Result<WorkFolder> make(const std::filesystem::path& path);
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::exchange(other.path_, std::filesystem::path())) {}
  ~WorkFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// ROOT/.pull, made. Errors: io_error.
Result<std::filesystem::path> make_pulls_folder(const std::filesystem::path& root);

/// The lock of `name`'s pull; says once that it waits. Errors: io_error, cancelled.
Result<FileLock> lock_pull(const std::filesystem::path& pulls, const std::string& name,
                           const PullHooks& hooks, uint64_t total_bytes);

/// Removes the work folders that killed pulls into `root` left; a pull that is under way keeps its
/// own. Unfinished files that a later pull goes on from stay.
void remove_stale_pulls(const std::string& root);

}  // namespace headrace
