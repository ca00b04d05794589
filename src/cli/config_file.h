// Settings of a command in a TOML file: its keys are the long names of the command's options,
// without dashes. Must not know which command; toml++ is in config_file.cc alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

/// Stores the values in `text` into the targets of the command's options, but for those that
/// `is_given` tells of: they were typed, which is stronger. A key may be any spelling that the
/// command line takes ("max-queue", "max_queue", "ctx-size"). Errors (invalid_argument; `where` is
/// "NAME:LINE"): text that is no TOML; an unknown key (the hint names the nearest); a value of
/// another type, or none that the option takes; a key that is only for the command line; one option
/// by two names. Then some values may have been stored.
Result<void> apply_config(const Command& command, std::string_view text, const std::string& name,
                          const std::function<bool(const Option&)>& is_given);

/// The same with a file. Errors: also not_found and io_error.
Result<void> apply_config_file(const Command& command, const std::string& path,
                               const std::function<bool(const Option&)>& is_given);

/// The settings of `options` as they are now, as such a file: what has no value is there as a
/// comment, and of secrets only how many there are.
std::string config_text(const std::vector<Option>& options);

}  // namespace headrace::cli
