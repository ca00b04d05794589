// See input_stream.h.
#include "base/os/input_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os/signals.h"

namespace headrace {
namespace {

constexpr size_t kMaxLineBytes = size_t{1} << 30;

Error read_error(const std::string& name, bool is_standard, int error_number) {
  if (error_number == EISDIR) {
    return {ErrorCode::io_error, "a directory, not a file", name,
            is_standard ? "give it a file or a pipe" : "name a file in it"};
  }
  if (is_standard && error_number == EBADF) {
    return {ErrorCode::io_error, "is closed, or not open for reading", name,
            "give it a file or a pipe"};
  }
  return {ErrorCode::io_error, std::string("cannot be read: ") + std::strerror(error_number), name,
          is_standard ? "check what it is connected to" : "check the file and its disk"};
}

Error open_error(const std::string& path, int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) {
    return {ErrorCode::not_found, "no such file", path, "check the path"};
  }
  return {ErrorCode::io_error, std::string("cannot be opened: ") + std::strerror(error_number),
          path, "check its permissions"};
}

}  // namespace

InputStream InputStream::standard_input() {
  return {STDIN_FILENO, false, "standard input"};
}

Result<InputStream> InputStream::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return open_error(path, errno);
  InputStream stream(fd, true, path);
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) return read_error(path, false, EISDIR);
  return stream;
}

InputStream::InputStream(InputStream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      is_owned_(other.is_owned_),
      name_(std::move(other.name_)),
      ahead_(std::move(other.ahead_)),
      next_(other.next_) {}

InputStream::~InputStream() {
  if (is_owned_ && fd_ >= 0) ::close(fd_);
}

Result<size_t> InputStream::read(std::span<char> buffer) {
  while (wait_for_input(fd_)) {
    const ssize_t count = ::read(fd_, buffer.data(), buffer.size());
    if (count >= 0) return static_cast<size_t>(count);
    // EAGAIN: another process made the pipe or terminal non-blocking, and a third read it.
    if (errno != EINTR && errno != EAGAIN) return read_error(name_, !is_owned_, errno);
  }
  return Error{ErrorCode::cancelled, "interrupted", "", ""};
}

Result<bool> InputStream::read_line(std::string& line) {
  line.clear();
  for (;;) {
    const size_t end = ahead_.find('\n', next_);
    line.append(ahead_, next_, end - next_);
    if (end != std::string::npos) {
      next_ = end + 1;
      break;
    }
    ahead_.clear();
    next_ = 0;
    if (line.size() > kMaxLineBytes) {
      return Error{ErrorCode::resource_exhausted, "a line is longer than 1 GiB", name_, ""};
    }
    std::array<char, 16 * 1024> part;
    HEADRACE_ASSIGN(const size_t count, read(part));
    if (count == 0 && line.empty()) return false;
    if (count == 0) break;
    ahead_.assign(part.data(), count);
  }
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

void fill_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The wrong way round: reading from it, or writing to it, fails. It takes the lowest number
    // that is free, which is this one.
    ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace headrace
