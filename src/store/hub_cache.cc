// See hub_cache.h.
#include "store/hub_cache.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/os/file_lock.h"
#include "store/file_names.h"
#include "store/hub_api.h"
#include "store/small_file.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRepoPrefix = "models--";
constexpr size_t kMaxFilesWalked = 100'000;
constexpr size_t kMaxRefBytes = 256;

Error cache_error(const std::string& what, const fs::path& path, const std::error_code& error) {
  return {ErrorCode::io_error, what + ": " + error.message(), path.string(),
          "set HF_HOME to a folder that you may write"};
}

/// "models--org--repo" is "org/repo"; "" where it is no repository's folder.
std::string repo_of(const std::string& folder) {
  if (!folder.starts_with(kRepoPrefix)) return "";
  std::string repo = folder.substr(kRepoPrefix.size());
  const size_t line = repo.find("--");
  if (line != std::string::npos) repo.replace(line, 2, "/");
  return repo;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  while (!error && at != fs::directory_iterator() && entries.size() < kMaxFilesWalked) {
    entries.push_back(at->path());
    at.increment(error);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Every path below `folder` that is no folder, relative to it. Links to folders are not followed.
std::vector<std::string> walk_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error);
  while (!error && at != fs::recursive_directory_iterator() && files.size() < kMaxFilesWalked) {
    std::error_code ignored;
    if (!at->is_directory(ignored) || at->is_symlink(ignored)) {
      files.push_back(at->path().lexically_relative(folder).string());
    }
    at.increment(error);
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Whether `path`, its links followed, lies below `folder`.
bool is_inside(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path outer = fs::canonical(folder, error);
  if (error) return false;
  const fs::path inner = fs::canonical(path, error);
  if (error) return false;
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// Makes `folder / below`, where none of the new parts may be a link.
Result<void> make_folders(const fs::path& folder, const fs::path& below) {
  fs::path at = folder;
  for (const fs::path& part : below) {
    at /= part;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(at, error);
    if (fs::is_directory(status)) continue;
    if (fs::is_symlink(status)) {
      return Error{ErrorCode::corrupt_data, "a link stands where the cache has a folder",
                   at.string(), "remove it: nothing is written behind it"};
    }
    fs::create_directory(at, error);
    if (error && !fs::is_directory(at)) return cache_error("cannot make a folder", at, error);
  }
  return {};
}

/// The names that a repository's commits have, by commit; "main" wins.
std::map<std::string, std::string> names_of_commits(const fs::path& repo) {
  std::map<std::string, std::string> names;
  for (const std::string& ref : walk_files(repo / "refs")) {
    const auto commit = read_text_up_to((repo / "refs" / ref).string(), kMaxRefBytes);
    if (commit && is_commit(*commit) && (ref == "main" || !names.contains(*commit))) {
      names[*commit] = ref;
    }
  }
  return names;
}

void remove_empty_parents(fs::path folder, const fs::path& last) {
  std::error_code error;
  while (folder != last && fs::is_empty(folder, error) && !error) {
    fs::remove(folder, error);
    folder = folder.parent_path();
  }
}

}  // namespace

fs::path HubCache::repo_folder(const std::string& repo) const {
  std::string name(kRepoPrefix);
  for (const char c : repo) name += c == '/' ? std::string("--") : std::string(1, c);
  return folder_ / name;
}

fs::path HubCache::blob(const std::string& repo, const std::string& id) const {
  return repo_folder(repo) / "blobs" / id;
}

fs::path HubCache::snapshot(const std::string& repo, const std::string& commit) const {
  return repo_folder(repo) / "snapshots" / commit;
}

fs::path HubCache::lock(const std::string& repo, const std::string& id) const {
  return folder_ / ".locks" / repo_folder(repo).filename() / (id + ".lock");
}

std::optional<std::string> HubCache::commit_of(const std::string& repo,
                                               const std::string& revision) const {
  const fs::path ref = repo_folder(repo) / "refs" / revision;
  const auto commit = read_text_up_to(ref.string(), kMaxRefBytes);
  if (commit && is_commit(*commit)) return commit;
  std::error_code error;
  if (is_commit(revision) && fs::is_directory(snapshot(repo, revision), error)) return revision;
  return std::nullopt;
}

bool HubCache::has_file(const std::string& repo, const std::string& commit,
                        const RepoFile& file) const {
  const fs::path path = snapshot(repo, commit) / file.path;
  std::error_code error;
  if (!fs::is_regular_file(path, error) || !is_inside(folder_, path)) return false;
  return file.size_bytes == 0 || fs::file_size(path, error) == file.size_bytes;
}

std::vector<RepoFile> HubCache::snapshot_files(const std::string& repo,
                                               const std::string& commit) const {
  std::vector<RepoFile> files;
  const fs::path folder = snapshot(repo, commit);
  for (const std::string& path : walk_files(folder)) {
    RepoFile file;
    file.path = path;
    if (!check_file_name(path).ok() || !has_file(repo, commit, file)) continue;
    std::error_code error;
    file.size_bytes = fs::file_size(folder / path, error);
    const fs::path target = fs::read_symlink(folder / path, error);
    const std::string id = error ? "" : target.filename().string();
    if (id.size() == 64 && is_plain_word(id)) file.sha256 = id;
    files.push_back(std::move(file));
  }
  return files;
}

Result<CachedModel> HubCache::find(const std::string& repo, const std::string& revision,
                                   const std::string& commit, const std::string& selector) const {
  const std::vector<RepoFile> files = snapshot_files(repo, commit);
  HEADRACE_ASSIGN(const Selection chosen, select_files(files, selector));
  CachedModel model;
  model.repo = repo;
  model.revision = revision;
  model.commit = commit;
  model.format = chosen.format;
  model.quantization = chosen.quantization;
  model.label = chosen.label;
  const fs::path folder = snapshot(repo, commit);
  model.path =
      (chosen.format == ModelFormat::gguf ? folder / files[chosen.files.front()].path : folder)
          .string();
  for (const size_t index : chosen.files) {
    model.files.push_back(files[index]);
    model.size_bytes += files[index].size_bytes;
  }
  return model;
}

std::vector<CachedModel> HubCache::models() const {
  std::vector<CachedModel> found;
  for (const fs::path& folder : entries_of(folder_)) {
    const std::string repo = repo_of(folder.filename().string());
    if (repo.empty()) continue;
    const auto names = names_of_commits(folder);
    for (const fs::path& snapshot : entries_of(folder / "snapshots")) {
      const std::string commit = snapshot.filename().string();
      if (!is_commit(commit)) continue;
      const auto name = names.find(commit);
      const std::string revision = name != names.end() ? name->second : commit;
      const std::vector<RepoFile> files = snapshot_files(repo, commit);
      std::vector<std::string> selectors;
      for (const GgufModel& model : gguf_models_of(files)) {
        if (model.is_whole) selectors.push_back(model.path);
      }
      if (selectors.empty() && !safetensors_files_of(files).empty()) selectors.emplace_back();
      for (const std::string& selector : selectors) {
        if (auto model = find(repo, revision, commit, selector); model.ok()) {
          found.push_back(std::move(*model));
        }
      }
    }
  }
  return found;
}

Result<void> HubCache::prepare(const std::string& repo, const std::string& commit) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return cache_error("cannot make the cache's folder", folder_, error);
  const fs::path name = repo_folder(repo).filename();
  HEADRACE_TRY(make_folders(folder_, name / "blobs"));
  HEADRACE_TRY(make_folders(folder_, name / "refs"));
  HEADRACE_TRY(make_folders(folder_, name / "snapshots" / commit));
  return make_folders(folder_, fs::path(".locks") / name);
}

Result<void> HubCache::link(const std::string& repo, const std::string& commit,
                            const std::string& file, const std::string& id) const {
  const fs::path folder = snapshot(repo, commit);
  HEADRACE_TRY(make_folders(folder, fs::path(file).parent_path()));
  const fs::path name = folder / file;
  fs::path target = "../..";
  for (const char c : file) {
    if (c == '/') target /= "..";
  }
  target = target / "blobs" / id;
  std::error_code error;
  if (fs::read_symlink(name, error) == target && !error) return {};
  const fs::path fresh = name.string() + ".headrace";
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (error) return cache_error("cannot make a link", name, error);
  fs::rename(fresh, name, error);
  if (error) return cache_error("cannot make a link", name, error);
  return {};
}

Result<void> HubCache::set_ref(const std::string& repo, const std::string& revision,
                               const std::string& commit) const {
  if (revision == commit) return {};
  const fs::path ref = repo_folder(repo) / "refs" / revision;
  if (read_text_up_to(ref.string(), kMaxRefBytes) == commit) return {};
  HEADRACE_TRY(make_folders(repo_folder(repo) / "refs", fs::path(revision).parent_path()));
  return write_small_file(ref.string(), commit);
}

Result<uint64_t> HubCache::remove_files(const std::string& repo, const std::string& commit,
                                        const std::vector<std::string>& files) const {
  const fs::path base = repo_folder(repo);
  std::set<fs::path> blobs;
  uint64_t freed = 0;
  std::error_code error;
  for (const std::string& file : files) {
    const fs::path path = snapshot(repo, commit) / file;
    if (fs::is_symlink(path, error) && is_inside(base / "blobs", path)) {
      blobs.insert(fs::canonical(path, error));
    } else if (fs::is_regular_file(path, error)) {
      freed += fs::file_size(path, error);
    }
    fs::remove(path, error);
    if (error) return cache_error("cannot remove", path, error);
    remove_empty_parents(path.parent_path(), base);
  }
  for (const std::string& left : walk_files(base / "snapshots")) {
    blobs.erase(fs::canonical(base / "snapshots" / left, error));
  }
  for (const fs::path& blob : blobs) {
    const uint64_t size = fs::file_size(blob, error);
    fs::remove(blob, error);
    if (error) return cache_error("cannot remove", blob, error);
    freed += size;
  }
  if (walk_files(base / "snapshots").empty()) remove_repo(repo);
  return freed;
}

void HubCache::remove_repo(const std::string& repo) const {
  const fs::path base = repo_folder(repo);
  std::error_code error;
  for (const fs::path& blob : entries_of(base / "blobs")) {
    if (blob.extension() != ".incomplete") continue;
    const auto held =
        FileLock::acquire(lock(repo, blob.stem().string()).string(), [] { return false; });
    if (held.ok()) fs::remove(blob, error);  // else a pull is under way
  }
  fs::remove(base / "blobs", error);
  if (!fs::exists(base / "blobs", error)) fs::remove_all(base, error);
}

}  // namespace headrace
