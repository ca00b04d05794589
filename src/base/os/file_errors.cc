// See file_errors.h.
#include "base/os/file_errors.h"

#include <cerrno>
#include <cstring>

namespace headrace {

Error open_error(const std::string& path, int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR) {
    return {ErrorCode::not_found, "no such file", path, "check the path"};
  }
  return {ErrorCode::io_error, std::string("cannot be opened: ") + std::strerror(error_number),
          path, "check its permissions"};
}

Error write_error(const std::string& name, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return {full ? ErrorCode::resource_exhausted : ErrorCode::io_error,
          std::string("cannot write: ") + std::strerror(error_number), name, ""};
}

}  // namespace headrace
