// How a broken invariant is reported; see check.h.
#include "base/check.h"

#include <string_view>

namespace headrace {

void check_failed(const char* file, int line, const char* what, const std::string& detail) {
  // Only the file's name: the build machine's folders are nobody's business.
  std::string_view path(file);
  if (const auto slash = path.rfind('/'); slash != std::string_view::npos) {
    path.remove_prefix(slash + 1);
  }
  std::string text = "check failed: " + std::string(what);
  if (!detail.empty()) text += " (" + detail + ")";
  text += " at " + std::string(path) + ":" + std::to_string(line);
  throw InternalError(text);
}

}  // namespace headrace
