// See small_file.h.
#include "store/small_file.h"

#include <span>
#include <utility>

#include "base/os/atomic_file.h"
#include "base/os/input_stream.h"

namespace headrace {

std::optional<std::string> read_text_up_to(const std::string& path, size_t max_bytes) {
  auto text = read_small_file(path, max_bytes);
  if (!text.ok()) return std::nullopt;
  return std::move(*text);
}

Result<void> write_small_file(const std::string& path, std::string_view text) {
  HEADRACE_ASSIGN(AtomicFile file, AtomicFile::create_beside(path));
  HEADRACE_TRY(file.write(std::as_bytes(std::span(text.data(), text.size()))));
  return file.commit(path);
}

}  // namespace headrace
