// Makes a user's arguments digestible before they are parsed: spellings of other engines become
// ours, `-np 4` becomes `--np 4` (a parser would read `-n p`), `--max_tokens` becomes
// `--max-tokens`. Must not know CLI11.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

/// Flags that mean the same in llama.cpp, vLLM and here. A command that has one of a group's
/// spellings accepts them all.
const std::vector<std::vector<std::string>>& spelling_groups();

/// A flag of another engine that has no counterpart here.
struct ForeignFlag {
  std::string name;
  bool takes_value = false;
  bool refused = false;  ///< else ignored with a warning
  std::string reason;    ///< why it has no effect, or what to do instead
  /// The only value that is not refused; empty: any is ignored.
  std::string neutral_value{};
};
const std::vector<ForeignFlag>& foreign_flags();

struct NormalizedArgs {
  std::vector<std::string> args;
  std::vector<std::string> warnings;             ///< one for each ignored flag
  std::map<std::string, std::string> spellings;  ///< by Option::names: how it was written last
};

/// Whether the command has an option of this name, or of another spelling of the same.
bool takes_option(const Command& command, const std::string& name);

/// The option that takes_option() tells of, or null.
const Option* spelled_option(const Command& command, const std::string& name);

/// The spelling that a parser gets for a name of an option: "-np" gives "--np", others themselves.
std::string parser_name(std::string_view name);

/// Rewrites `args` (without the program's and the command's name) for `command`: options, each
/// value in an argument of its own, then `--` and the positionals. Values stay as they are. A flag
/// that is switched off, by `--no-FLAG` (of `--no-FLAG` by `--FLAG`) or `--FLAG=false`, becomes
/// `--FLAG=false`: a file of settings may have switched it on. Errors
/// (invalid_argument): a refused flag; one option given by two spellings with different values
/// (`-ctk f16 -ctv f32`).
Result<NormalizedArgs> normalize_args(const Command& command, const std::vector<std::string>& args);

}  // namespace headrace::cli
