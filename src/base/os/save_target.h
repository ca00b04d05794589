// Where a file is written that may take the place of an earlier one of its kind, and of nothing
// else.
#pragma once

#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// The file behind symbolic links (so that a link stays one), or `path` itself where nothing has
/// that name. A file that is there must begin with `magic`; `kind` names it in the error ("session
/// file"). Errors: invalid_argument (anything else is there), io_error (no folder).
Result<std::string> save_target(const std::string& path, std::string_view magic,
                                std::string_view kind);

}  // namespace headrace
