// See body_check.h.
#include "store/body_check.h"

#include "store/file_names.h"

namespace headrace {

bool may_be_text(std::string_view name) {
  return !name.ends_with(".gguf") && !name.ends_with(".safetensors");
}

Result<void> check_body(const std::string& name, std::string_view head) {
  const auto refuse = [&](std::string message, std::string hint) {
    return Error{ErrorCode::corrupt_data, std::move(message), name, std::move(hint)};
  };
  if (head.starts_with("version https://git-lfs")) {
    return refuse("a pointer of Git LFS came instead of the file",
                  "the repository was copied without its large files");
  }
  const std::string text = lower_case(head.substr(0, 64));
  const size_t first = text.find_first_not_of(" \t\r\n");
  const std::string_view begin =
      first == std::string::npos ? "" : std::string_view(text).substr(first);
  if (begin.starts_with("<!doctype") || begin.starts_with("<html")) {
    return refuse("a web page came instead of the file", "open the address in a browser");
  }
  if (name.ends_with(".gguf") && !head.starts_with("GGUF")) {
    return refuse("this is no GGUF file: it does not begin with GGUF", "check the address");
  }
  if (name.ends_with(".safetensors") && (head.size() < 9 || head[8] != '{')) {
    return refuse("this is no safetensors file: its header does not begin with a brace", "");
  }
  return {};
}

}  // namespace headrace
