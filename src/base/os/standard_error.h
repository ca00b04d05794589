// Lines on standard error from a thread of their own, past the C library's locks: a process may end
// while one of them waits for its reader. Must not know what is written.
#pragma once

#include <string_view>

namespace headrace {

/// Writes all of it, waiting for its reader; false where it cannot, as when nobody reads any more.
/// From then on the calling thread gets no SIGPIPE.
bool write_standard_error(std::string_view text);

}  // namespace headrace
