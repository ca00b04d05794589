// See model_directory.h.
#include "checkpoint/model_directory.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// models--ORG--NAME/blobs for models--ORG--NAME/snapshots/REVISION; else empty.
std::string blobs_of(const fs::path& root) {
  const fs::path snapshots = root.parent_path();
  const fs::path repository = snapshots.parent_path();
  if (snapshots.filename() != "snapshots") return {};
  if (!repository.filename().string().starts_with("models--")) return {};
  return (repository / "blobs").string();
}

bool is_below(const fs::path& file, const fs::path& folder) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != ".." && relative != ".";
}

/// A name that goes down only, whatever lies there.
bool goes_down(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) return false;
  const fs::path path(name);
  if (path.is_absolute()) return false;
  for (const fs::path& part : path) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace

Result<ModelDirectory> ModelDirectory::open(const std::string& path) {
  std::error_code error;
  const fs::path root = fs::canonical(path, error);
  if (error) {
    return Error{
        error == std::errc::no_such_file_or_directory ? ErrorCode::not_found : ErrorCode::io_error,
        error.message(), path, ""};
  }
  if (!fs::is_directory(root, error)) {
    return Error{ErrorCode::io_error, "expected a directory", path, ""};
  }
  ModelDirectory directory;
  directory.path_ = path;
  while (directory.path_.size() > 1 && directory.path_.back() == '/') directory.path_.pop_back();
  directory.root_ = root.string();
  directory.blobs_ = blobs_of(root);
  return directory;
}

std::string ModelDirectory::path_of(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

bool ModelDirectory::has(std::string_view name) const {
  std::error_code error;
  return goes_down(name) && fs::is_regular_file(path_of(name), error);
}

Result<void> ModelDirectory::check_inside(std::string_view name) const {
  const auto leaves = [&] {
    return Error{ErrorCode::invalid_argument,
                 quote_name(name) + " leads out of the model's directory", path_,
                 "put the file itself into the directory"};
  };
  if (!goes_down(name)) return leaves();
  std::error_code error;
  const fs::path file = fs::canonical(path_of(name), error);
  if (error) return {};  // opening says why
  if (is_below(file, root_) || (!blobs_.empty() && is_below(file, blobs_))) return {};
  return leaves();
}

Result<MappedFile> ModelDirectory::open_file(std::string_view name) const {
  HEADRACE_TRY(check_inside(name));
  return MappedFile::open(path_of(name));
}

Result<std::optional<MappedFile>> ModelDirectory::open_optional(std::string_view name) const {
  std::error_code error;
  if (!has(name) || fs::file_size(path_of(name), error) == 0) {
    return std::optional<MappedFile>();
  }
  HEADRACE_ASSIGN(MappedFile file, open_file(name));
  return std::optional<MappedFile>(std::move(file));
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace headrace
