// Whether what came can be the file that was asked for, by its first bytes. Must not know more of
// formats.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

inline constexpr size_t kBodyHeadBytes = 64;

/// `head`: the first bytes, kBodyHeadBytes or the whole file. A pointer of Git LFS and a web page
/// are refused; a .gguf file begins with its magic, a .safetensors file with a header's length and
/// a brace. Errors: corrupt_data.
Result<void> check_body(const std::string& name, std::string_view head);

/// Whether the file is text that a server may call by any type.
bool may_be_text(std::string_view name);

}  // namespace headrace
