// For the tests of this folder: reads GGUF files that lie in memory.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "checkpoint/gguf_file.h"

namespace headrace::test {

/// `file` must outlive the result.
inline Result<GgufFile> read(const std::string& file,
                             uint64_t budget_bytes = HeapBudget::kDefaultBytes) {
  HeapBudget budget(budget_bytes);
  return read_gguf(std::as_bytes(std::span(file)), budget);
}

/// Why it cannot be read, or "no error".
inline Error error_of(const std::string& file) {
  auto result = read(file);
  return result.ok() ? Error{ErrorCode::internal, "no error", "", ""} : std::move(result).error();
}

}  // namespace headrace::test
