// SHA-256 of a stream of bytes, and git's own checksum of a file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "headrace/result.h"

namespace headrace {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  /// Lower-case hexadecimal digits; nothing may be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The id that git gives a file's bytes: SHA-1 over "blob SIZE", a zero byte and the bytes. Errors:
/// io_error.
Result<std::string> git_blob_sha1(const std::string& path);

}  // namespace headrace
