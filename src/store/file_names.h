// Names that come from a server or an archive, before they become paths here. Must not know what
// the files are.
#pragma once

#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// Whether `path` may be a file below a folder of ours: relative, of at most 1024 bytes, its parts
/// neither empty nor "." nor ".." nor longer than 255 bytes, without control characters and
/// backslashes. Errors: corrupt_data, with the name.
Result<void> check_file_name(std::string_view path);

/// Whether `word` is one name of a file made of letters, digits, `.`, `_`, `-`, not more than 128
/// of them, and does not begin with a dot: what a server may call a blob.
bool is_plain_word(std::string_view word);

/// `path` in lower case (ASCII letters only).
std::string lower_case(std::string_view text);

/// What is behind the last slash.
std::string_view base_name(std::string_view path);

}  // namespace headrace
