// See append_file.h.
#include "base/os/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/os/file_errors.h"

namespace headrace {

AppendFile::AppendFile(int fd, bool owned, std::string name)
    : fd_(fd), is_owned_(owned), is_regular_(false), name_(std::move(name)) {
  struct stat info {};
  is_regular_ = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
}

Result<AppendFile> AppendFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return write_error(path, errno);
  return AppendFile(fd, true, path);
}

AppendFile AppendFile::standard_output() {
  return {STDOUT_FILENO, false, "standard output"};
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      is_owned_(other.is_owned_),
      is_regular_(other.is_regular_),
      name_(std::move(other.name_)) {}

AppendFile::~AppendFile() {
  if (is_owned_ && fd_ >= 0) ::close(fd_);
}

Result<void> AppendFile::truncate(uint64_t bytes) {
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) == 0) return {};
  return write_error(name_, errno);
}

Result<void> AppendFile::append(std::string_view piece) {
  const off_t before = is_regular_ ? ::lseek(fd_, 0, SEEK_END) : -1;
  for (std::string_view left = piece; !left.empty();) {
    const ssize_t put = ::write(fd_, left.data(), left.size());
    if (put >= 0) {
      left.remove_prefix(static_cast<size_t>(put));
    } else if (errno != EINTR) {
      Error error = write_error(name_, errno);
      if (before >= 0 && ::ftruncate(fd_, before) != 0) error.hint = "its last line is cut";
      return error;
    }
  }
  return {};
}

Result<void> AppendFile::sync() {
  if (!is_regular_ || ::fdatasync(fd_) == 0) return {};
  return write_error(name_, errno);
}

}  // namespace headrace
