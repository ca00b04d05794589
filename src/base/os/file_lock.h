// A lock between processes, held on a file; the system frees it when its holder dies.
#pragma once

#include <functional>
#include <string>

#include "headrace/result.h"

namespace headrace {

class FileLock {
 public:
  /// Waits for the lock on `path` (made if absent). While another process has it, `waiting` is
  /// called about five times a second; returning false gives up (cancelled). Errors: io_error.
  static Result<FileLock> acquire(const std::string& path, const std::function<bool()>& waiting);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace headrace
