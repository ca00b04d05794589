// See save_target.h.
#include "base/os/save_target.h"

#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/os/mapped_file.h"

namespace headrace {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

Result<std::string> save_target(const std::string& path, std::string_view magic,
                                std::string_view kind) {
  namespace fs = std::filesystem;
  const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
    return Error{code, std::move(message), path, std::move(hint)};
  };
  std::error_code error;
  std::string target = path;
  const fs::file_status there = fs::symlink_status(path, error);
  if (there.type() == fs::file_type::not_found) {
    const fs::path folder = fs::path(path).parent_path();
    if (folder.empty() || fs::is_directory(folder, error)) return target;
    return refuse(ErrorCode::io_error, "there is no such folder", "make the folder first");
  }
  if (there.type() == fs::file_type::symlink) {
    target = fs::canonical(path, error).string();
    if (error) {
      return refuse(ErrorCode::invalid_argument, "a symbolic link that leads to no file",
                    "give another name");
    }
  }
  const auto file = MappedFile::open(target);
  if (file.ok() && begins_with(file->bytes(), magic)) return target;
  if (!file.ok() && file.error().code == ErrorCode::not_found) return target;
  const bool is_file = file.ok() || file.error().code == ErrorCode::corrupt_data;
  return refuse(ErrorCode::invalid_argument,
                is_file ? "is there already, and is no " + std::string(kind) : file.error().message,
                "give another name");
}

}  // namespace headrace
