// What a front end asks about a session file before it has an engine.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace {

/// Whether Engine::save_session could write that file, room on the disk aside: so that nobody
/// learns it after a long answer. Errors: those of save_session.
Result<void> check_session_target(const std::string& path);

}  // namespace headrace
