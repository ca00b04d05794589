// See input_stream.h.
#include "base/os/input_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os/file_errors.h"
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
      next_(other.next_),
      line_bytes_(other.line_bytes_) {}

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

bool InputStream::take_ahead(std::string& line, size_t max_bytes) {
  const size_t end = ahead_.find('\n', next_);
  const bool has_end = end != std::string::npos;
  const size_t count = (has_end ? end : ahead_.size()) - next_;
  if (line.size() <= max_bytes) line.append(ahead_, next_, std::min(count, max_bytes + 1));
  next_ += count + (has_end ? 1 : 0);
  line_bytes_ += count + (has_end ? 1 : 0);
  return has_end;
}

Result<bool> InputStream::fill_ahead() {
  std::array<char, 16 * 1024> part;
  HEADRACE_ASSIGN(const size_t count, read(part));
  ahead_.assign(part.data(), count);
  next_ = 0;
  return count > 0;
}

Result<bool> InputStream::read_line(std::string& line) {
  line.clear();
  for (;;) {
    const bool has_end = take_ahead(line, kMaxLineBytes);
    if (line.size() > kMaxLineBytes) {
      return Error{ErrorCode::resource_exhausted, "a line is longer than 1 GiB", name_, ""};
    }
    if (has_end) break;
    HEADRACE_ASSIGN(const bool has_more, fill_ahead());
    if (!has_more && line.empty()) return false;
    if (!has_more) break;
  }
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

Result<InputStream::Line> InputStream::read_line(std::string& line, size_t max_bytes) {
  line.clear();
  const uint64_t begin = line_bytes_;
  bool has_end = true;
  while (!take_ahead(line, max_bytes)) {
    HEADRACE_ASSIGN(const bool has_more, fill_ahead());
    if (has_more) continue;
    if (line_bytes_ == begin) return Line::none;
    has_end = false;
    break;
  }
  if (has_end && line.ends_with('\r')) line.pop_back();
  if (line.size() > max_bytes) {
    line.resize(max_bytes);
    return Line::too_long;
  }
  return has_end ? Line::whole : Line::unended;
}

Result<std::string> read_small_file(const std::string& path, size_t max_bytes) {
  HEADRACE_ASSIGN(InputStream in, InputStream::open(path));
  std::string out;
  std::array<char, 4096> piece{};
  while (true) {
    HEADRACE_ASSIGN(const size_t count, in.read(piece));
    if (count == 0) return out;
    if (count > max_bytes - out.size()) {
      return Error{ErrorCode::out_of_range,
                   "is longer than the " + std::to_string(max_bytes) + " bytes that it may have",
                   path, ""};
    }
    out.append(piece.data(), count);
  }
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
