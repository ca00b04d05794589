// What a command is: its name, options, examples and what it runs. Help texts, the man page and
// shell completion are all made from this description. Must not know CLI11.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/result.h"

namespace headrace::cli {

/// Exit codes.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

/// Where a parsed value goes. The pointed-to object lives in the command's own state.
using OptionTarget =
    std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*,
                 std::optional<int64_t>*, std::optional<double>*, std::optional<std::string>*>;

struct Option {
  std::string names;       ///< "-m,--model"; a bare word is a positional ("prompt")
  std::string value_name;  ///< "MODEL"; empty for a flag (bool)
  std::string help;        ///< one sentence, without a trailing period
  OptionTarget target;
  std::string default_text;          ///< shown in help; empty: none
  std::vector<std::string> choices;  ///< allowed values; empty: any
  bool required = false;
  bool is_path = false;  ///< completion offers file names
  std::string group;     ///< heading in help; empty: "Options"
};

struct Example {
  std::string command;
  std::string what;
};

struct Command {
  std::string name;
  std::string summary;      ///< one line, for the list of commands
  std::string description;  ///< paragraphs, for --help and the man page
  std::vector<Option> options;
  std::vector<Example> examples;
  std::function<int()> run;     ///< returns an exit code
  std::shared_ptr<void> state;  ///< owns what the options' targets point to
};

/// Every command, in the order of the help text. One line a command.
std::vector<Command> all_commands();

}  // namespace headrace::cli
