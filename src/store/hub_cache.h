// The cache of what came from a model hub, shared with other tools: HUB/models--ORG--REPO/ with
// blobs/HASH, refs/NAME (a commit) and snapshots/COMMIT/FILE (links to blobs). Must not know HTTP.
// Source: huggingface_hub's description of its cache.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headrace/result.h"
#include "store/select_files.h"

namespace headrace {

/// A model found in the cache, whoever put it there.
struct CachedModel {
  std::string repo;
  std::string revision;  ///< "main", or another that is known; else the commit
  std::string commit;
  std::string path;  ///< what to open: a .gguf file, or the snapshot's folder
  ModelFormat format = ModelFormat::gguf;
  std::string quantization;
  std::string label;  ///< of select_files
  uint64_t size_bytes = 0;
  std::vector<RepoFile> files;  ///< its files, with sizes
};

class HubCache {
 public:
  /// `folder`: "~/.cache/huggingface/hub"; need not be there.
  explicit HubCache(std::string folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path repo_folder(const std::string& repo) const;
  /// `id`: the ETag, which is the file's checksum.
  std::filesystem::path blob(const std::string& repo, const std::string& id) const;
  std::filesystem::path snapshot(const std::string& repo, const std::string& commit) const;
  /// The lock that other tools take too while they download a blob.
  std::filesystem::path lock(const std::string& repo, const std::string& id) const;

  /// The commit that a revision is here: what refs/ says, or the revision itself where it is a
  /// commit that has a snapshot. Nothing: unknown here.
  std::optional<std::string> commit_of(const std::string& repo, const std::string& revision) const;
  /// Whether the snapshot has the file whole: of this size (0: any), inside of this cache.
  bool has_file(const std::string& repo, const std::string& commit, const RepoFile& file) const;
  /// The files of a snapshot that are there, with sizes.
  std::vector<RepoFile> snapshot_files(const std::string& repo, const std::string& commit) const;
  /// The model that `selector` means in a snapshot. Errors: those of select_files.
  Result<CachedModel> find(const std::string& repo, const std::string& revision,
                           const std::string& commit, const std::string& selector) const;
  /// Every usable model of every snapshot, by repository.
  std::vector<CachedModel> models() const;

  /// Makes the folders of a repository. Errors: io_error, corrupt_data (a link stands where a
  /// folder should, and leads elsewhere).
  Result<void> prepare(const std::string& repo, const std::string& commit) const;
  /// Gives a blob its name in a snapshot, replacing what was there. Errors: io_error, corrupt_data
  /// (as above).
  Result<void> link(const std::string& repo, const std::string& commit, const std::string& file,
                    const std::string& id) const;
  /// Errors: io_error.
  Result<void> set_ref(const std::string& repo, const std::string& revision,
                       const std::string& commit) const;
  /// Removes files of a snapshot, their blobs where no other snapshot has them, and folders that
  /// became empty. Returns the bytes freed. Errors: io_error.
  Result<uint64_t> remove_files(const std::string& repo, const std::string& commit,
                                const std::vector<std::string>& files) const;

 private:
  /// Of a repository without snapshots, all but what somebody downloads.
  void remove_repo(const std::string& repo) const;

  std::filesystem::path folder_;
};

}  // namespace headrace
