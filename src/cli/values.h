// From the text of an option's value to its target, with errors in the words of the user.
#pragma once

#include <string>

#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

/// Stores `text` in the option's target (a vector appends; a flag is on unless it is "false").
/// Errors (invalid_argument): not a number, not one of the choices, outside min_value and
/// max_value, no text where a file or model is named. `where` is left empty.
Result<void> store_value(const Option& option, const std::string& text);

}  // namespace headrace::cli
