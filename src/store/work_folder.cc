// See work_folder.h.
#include "store/work_folder.h"

#include <vector>

namespace headrace {
namespace {

namespace fs = std::filesystem;

fs::path pulls_folder(const fs::path& root) {
  return root / ".pull";
}

}  // namespace

Result<WorkFolder> WorkFolder::make(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);  // a killed pull's
  if (!error) fs::create_directories(path, error);
  if (error) {
    return Error{ErrorCode::io_error, "cannot make a folder: " + error.message(), path.string(),
                 ""};
  }
  return WorkFolder(path);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<fs::path> make_pulls_folder(const fs::path& root) {
  const fs::path pulls = pulls_folder(root);
  std::error_code error;
  fs::create_directories(pulls, error);
  if (!error) return pulls;
  return Error{ErrorCode::io_error, "cannot make the store's folder: " + error.message(),
               root.string(), "set HEADRACE_HOME to a folder that you may write"};
}

Result<FileLock> lock_pull(const fs::path& pulls, const std::string& name, const PullHooks& hooks,
                           uint64_t total_bytes) {
  bool has_said = false;
  return FileLock::acquire((pulls / (name + ".lock")).string(), [&] {
    if (!has_said && hooks.note) hooks.note("another process pulls " + name + ": waiting for it");
    has_said = true;
    if (hooks.progress) hooks.progress({"waiting for another pull", 0, total_bytes});
    return !hooks.keep_going || hooks.keep_going();
  });
}

void remove_stale_pulls(const std::string& root) {
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(pulls_folder(root), error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  for (const auto& path : folders) {
    // A folder whose lock is free has no living owner.
    const auto lock = FileLock::acquire(path.string() + ".lock", [] { return false; });
    if (lock) fs::remove_all(path, error);
  }
}

}  // namespace headrace
