// Mapped files that become shorter while they are mapped: reading what is gone raises SIGBUS, which
// would end the process.
#pragma once

#include <cstddef>

namespace headrace {

/// While one is alive, reads of pages of [begin, begin + size) that the file has lost give zeros,
/// and `is_cut` says so. A SIGBUS elsewhere does what it did before.
class MappingGuard {
 public:
  MappingGuard() = default;  ///< of nothing
  /// [begin, begin + size): a private file mapping, begin at a page. Throws std::bad_alloc.
  MappingGuard(const std::byte* begin, size_t size);
  MappingGuard(MappingGuard&& other) noexcept;
  MappingGuard& operator=(MappingGuard&& other) noexcept;
  ~MappingGuard();

  /// Whether a page was found missing. Never becomes false again.
  bool is_cut() const;

  struct Range;

 private:
  Range* range_ = nullptr;
};

}  // namespace headrace
