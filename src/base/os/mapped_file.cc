// See mapped_file.h.
#include "base/os/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os/file_errors.h"

namespace headrace {
namespace {

/// The time of the last write, since 1970.
int64_t written_ns(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

constexpr const char* kReplaceHint =
    "get it again, and replace a model file only by renaming another over it";

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return open_error(path, errno);
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int error_number = errno;
    ::close(fd);
    return open_error(path, error_number);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    if (S_ISDIR(info.st_mode)) {
      return Error{ErrorCode::io_error, "is a directory, expected a file", path,
                   "name a file in it"};
    }
    return Error{ErrorCode::io_error, "is a pipe or a device, expected a file", path,
                 "write what it gives into a file, and name that"};
  }
  if (info.st_size == 0) {
    ::close(fd);
    return Error{ErrorCode::corrupt_data, "the file is empty", path, ""};
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error_number = errno;
  if (data == MAP_FAILED) {
    ::close(fd);
    return Error{ErrorCode::io_error,
                 std::string("cannot map the file: ") + std::strerror(error_number), path, ""};
  }
  MappedFile file;
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  file.fd_ = fd;
  file.written_ns_ = written_ns(info);
  file.path_ = path;
  file.guard_ = MappingGuard(file.data_, size);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      written_ns_(other.written_ns_),
      path_(std::move(other.path_)),
      guard_(std::move(other.guard_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(written_ns_, other.written_ns_);
  std::swap(path_, other.path_);
  std::swap(guard_, other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  guard_ = MappingGuard();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

Result<void> MappedFile::check_whole() const {
  if (!guard_.is_cut()) return {};
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && static_cast<size_t>(info.st_size) >= size_) {
    return Error{ErrorCode::io_error, "a part of the file cannot be read", path_, ""};
  }
  return Error{ErrorCode::corrupt_data, "the file became shorter while it was read", path_,
               kReplaceHint};
}

Result<void> MappedFile::check_unchanged() const {
  HEADRACE_TRY(check_whole());
  struct stat info {};
  if (::fstat(fd_, &info) != 0) {
    return Error{ErrorCode::io_error,
                 std::string("cannot look at the file: ") + std::strerror(errno), path_, ""};
  }
  if (static_cast<size_t>(info.st_size) == size_ && written_ns(info) == written_ns_) return {};
  const bool is_cut = static_cast<size_t>(info.st_size) < size_;
  return Error{ErrorCode::corrupt_data,
               is_cut ? "the file became shorter while it was in use"
                      : "the file was written, or its time set, while it was in use",
               path_, kReplaceHint};
}

void MappedFile::advise(const std::byte* begin, size_t size, int advice, bool inner) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto first = reinterpret_cast<uintptr_t>(begin);
  auto last = first + size;
  // Releasing must not touch a neighbour's pages; reading ahead may.
  first = inner ? (first + page - 1) / page * page : first / page * page;
  last = inner ? last / page * page : last;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, advice);
}

void MappedFile::release(const std::byte* begin, size_t size) const {
  advise(begin, size, MADV_DONTNEED, /*inner=*/true);
}

void MappedFile::will_need(const std::byte* begin, size_t size) const {
  advise(begin, size, MADV_WILLNEED, /*inner=*/false);
}

}  // namespace headrace
