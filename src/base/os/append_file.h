// A file that grows by whole pieces: what stands in it after a crash or a kill is a run of whole
// pieces, and at most one that is cut. Must not know what is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

class AppendFile {
 public:
  /// Opens `path` to write behind what is in it; makes it where it is absent. Errors: io_error.
  static Result<AppendFile> open(const std::string& path);
  /// The process' own; stays open when the object dies.
  static AppendFile standard_output();

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  /// Whether it is a file on a disk, which has a size and can be cut; not a pipe, a terminal, or
  /// /dev/null.
  bool is_regular() const { return is_regular_; }

  /// Cuts a regular file. Errors: io_error.
  Result<void> truncate(uint64_t bytes);
  /// All of `piece`; where that fails, a regular file is cut to what it was. Errors:
  /// resource_exhausted (disk, quota or file size limit), io_error.
  Result<void> append(std::string_view piece);
  /// Makes all pieces durable. Errors: those of append().
  Result<void> sync();

 private:
  AppendFile(int fd, bool owned, std::string name);

  int fd_;
  bool is_owned_;
  bool is_regular_;
  std::string name_;
};

}  // namespace headrace
