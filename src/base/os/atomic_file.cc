// See atomic_file.h.
#include "base/os/atomic_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/os/file_errors.h"

namespace headrace {
namespace {

/// The folder of a path; "." for a bare name.
std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& temporary) {
  std::string name = temporary;  // before the file is there: from then on nothing may throw
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return write_error(temporary, errno);
  return AtomicFile(fd, std::move(name));
}

Result<AtomicFile> AtomicFile::create_beside(const std::string& path, FileAccess access) {
  constexpr int kMaxTries = 1000;
  const mode_t mode = access == FileAccess::owner ? 0600 : 0666;
  for (int n = 0;; ++n) {
    std::string name =
        path + "." + std::to_string(::getpid()) + "-" + std::to_string(n) + ".partial";
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) return AtomicFile(fd, std::move(name));
    if (errno != EEXIST || n == kMaxTries) return write_error(path, errno);
  }
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), temporary_(std::move(other.temporary_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return write_error(temporary_, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Result<void> AtomicFile::commit(const std::string& path) {
  const std::string beside = folder_of(path);  // before the file has its name, since it may throw
  if (::fsync(fd_) != 0) return write_error(temporary_, errno);
  if (::rename(temporary_.c_str(), path.c_str()) != 0) return write_error(path, errno);
  ::close(std::exchange(fd_, -1));
  // The new name is durable only once its folder is.
  const int folder = ::open(beside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

Result<uint64_t> free_disk_bytes(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Error{ErrorCode::not_found, "there is no such folder", path, "make it first"};
    }
    return Error{ErrorCode::io_error,
                 std::string("cannot read the free space: ") + std::strerror(errno), path, ""};
  }
  const auto bytes = checked_mul<uint64_t>(info.f_bavail, info.f_frsize);
  return bytes ? *bytes : UINT64_MAX;
}

Result<void> expect_disk_room(const std::string& path, uint64_t bytes) {
  HEADRACE_ASSIGN(const uint64_t room, free_disk_bytes(folder_of(path)));
  if (bytes <= room) return {};
  const uint64_t needed = (bytes >> 20) + (bytes % (uint64_t{1} << 20) != 0 ? 1 : 0);
  return Error{ErrorCode::resource_exhausted,
               "needs " + std::to_string(needed) + " MiB, and the disk has room for " +
                   std::to_string(room >> 20) + " MiB",
               path, "make room, or write to another disk"};
}

}  // namespace headrace
