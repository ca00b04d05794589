// See session_target.h.
#include "app/session_target.h"

#include "engine/session/session_file.h"

namespace headrace {

Result<void> check_session_target(const std::string& path) {
  const auto writer = SessionWriter::create(path);
  if (!writer.ok()) return writer.error();
  return {};
}

}  // namespace headrace
