// The escapes of a string literal in a template.
#pragma once

#include <string>
#include <string_view>

namespace headrace::jinja {

/// What stands between the quotes, decoded as Python does (\n, \x41, \u00e9, \101, a backslash
/// before a newline; unknown escapes stay as they are). Faults: short hexadecimal escapes, code
/// points that UTF-8 cannot hold, \N{...}.
std::string unescape_literal(std::string_view raw, int line);

}  // namespace headrace::jinja
