// A read-only memory map of a whole file. Owns the mapping. Must not know what is in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/os/mapping_guard.h"
#include "headrace/result.h"

namespace headrace {

/// A regular file mapped for reading. Moving keeps the addresses of the bytes. Where the file is
/// cut while it is mapped, the bytes it lost read as zeros.
class MappedFile {
 public:
  /// Errors: not_found, io_error (a directory, no permission), corrupt_data (an empty file).
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Error: corrupt_data, once bytes were read that the file has lost.
  Result<void> check_whole() const;

  /// The same, and where the file has another size or was written since it was opened: what was
  /// read before this call is then not to be trusted. One system call.
  Result<void> check_unchanged() const;

  /// Tells the system that [begin, begin + size) will not be needed soon: its pages leave this
  /// process' resident set (they stay in the file cache). A hint, never an error.
  void release(const std::byte* begin, size_t size) const;

  /// Asks the system to read the range ahead. A hint, never an error.
  void will_need(const std::byte* begin, size_t size) const;

 private:
  MappedFile() = default;
  void advise(const std::byte* begin, size_t size, int advice, bool inner) const;

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;             ///< the file itself, whatever the path becomes the name of
  int64_t written_ns_ = 0;  ///< when it was last written
  std::string path_;
  MappingGuard guard_;
};

}  // namespace headrace
