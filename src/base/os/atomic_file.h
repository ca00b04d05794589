// A file that appears under its name only when it is whole, and how much room a disk has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/result.h"

namespace headrace {

/// Who may read a new file.
enum class FileAccess {
  by_umask,  ///< as usual for this user
  owner,     ///< this user alone
};

class AtomicFile {
 public:
  /// Begins writing to `temporary`, which must be on the file system of the final name; an existing
  /// one is replaced. Errors: io_error, resource_exhausted (disk full).
  static Result<AtomicFile> create(const std::string& temporary);
  /// The same under a new name of its own beside `path`, which begins with it: no file that is
  /// there already is touched. Errors: those of create, about `path`.
  static Result<AtomicFile> create_beside(const std::string& path,
                                          FileAccess access = FileAccess::by_umask);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();

  /// Errors: resource_exhausted (disk, quota or file size limit), io_error.
  Result<void> write(std::span<const std::byte> bytes);

  /// Makes the bytes durable, then gives the file its name, replacing what was there.
  Result<void> commit(const std::string& path);

 private:
  AtomicFile(int fd, std::string temporary) : fd_(fd), temporary_(std::move(temporary)) {}
  int fd_ = -1;
  std::string temporary_;
};

/// Bytes that a user may still write on the file system of `path`. Errors: not_found (it is no
/// file or folder), io_error.
Result<uint64_t> free_disk_bytes(const std::string& path);

/// Fails unless there is room for `bytes` at `path`, which need not be there, but its folder must.
/// Errors: resource_exhausted, and those of free_disk_bytes.
Result<void> expect_disk_room(const std::string& path, uint64_t bytes);

}  // namespace headrace
