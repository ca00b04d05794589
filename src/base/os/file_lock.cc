// See file_lock.h.
#include "base/os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace headrace {

Result<FileLock> FileLock::acquire(const std::string& path, const std::function<bool()>& waiting) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return Error{ErrorCode::io_error, std::string("cannot make the lock: ") + std::strerror(errno),
                 path, ""};
  }
  FileLock lock(fd);
  for (;;) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      return Error{ErrorCode::io_error, std::string("cannot lock: ") + std::strerror(errno), path,
                   ""};
    }
    if (waiting && !waiting()) {
      return Error{ErrorCode::cancelled, "interrupted while another process holds the lock", path,
                   ""};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  // The file stays: removing it would let a third process lock a new one beside a waiter's.
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace headrace
