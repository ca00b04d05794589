// Text for people: colours on a terminal only, and strings from files made safe to print.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace headrace::cli {

/// `text` with control characters (escape sequences, line ends, C1 controls, bidirectional
/// overrides) and bytes that are not UTF-8 written as \n, \t, \x1b, \u202e. For every string that
/// comes from a file or a user, before it reaches a terminal. Longer than `max_bytes`: cut at a
/// character, "..." added.
std::string printable(std::string_view text, size_t max_bytes = std::numeric_limits<size_t>::max());

/// "98.4 MB", "1.2 GB", "512 bytes": powers of 1000.
std::string size_text(uint64_t bytes);

enum class Style { bold, dim, red, yellow, green, cyan };

/// `text` in a style if `enabled`, else as it is.
std::string styled(std::string_view text, Style style, bool enabled);

/// Whether colours belong on standard output or error: a terminal, no NO_COLOR, TERM not "dumb".
bool colors_on_stdout();
bool colors_on_stderr();

/// Words of `text` broken into lines of at most `width` columns, each line after the first
/// beginning with `indent` spaces. Line ends in `text` are kept; a line that begins with a space is
/// kept as it is.
std::string wrapped(std::string_view text, size_t width, size_t indent);

}  // namespace headrace::cli
