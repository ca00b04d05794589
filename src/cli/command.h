// What a command is: its name, options, examples and what it runs. Help texts, the man page and
// shell completion are all made from this description. Must not know CLI11.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace::cli {

/// Exit codes.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;

/// Where a parsed value goes. The pointed-to object lives in the command's own state and is left
/// alone when the option is not given.
using OptionTarget =
    std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*,
                 std::vector<int64_t>*, std::optional<int64_t>*, std::optional<uint64_t>*,
                 std::optional<double>*, std::optional<std::string>*>;

/// An option, a flag or a positional argument. An option given twice keeps its last value, except
/// that a vector target keeps all of them. A positional takes one value, with a vector target
/// all that there are. Numbers into a vector may
/// be written with commas and as ranges: "1,8", "128-1024*2", "0-4096+1024".
struct Option {
  /// "-m,--model": any number of spellings; the first `--` one names it in messages, but for those
  /// about a value, which name what was typed. `-np` (one dash, several letters) is fine. A bare
  /// word is a positional ("prompt").
  std::string names = {};
  std::string value_name = {};  ///< "MODEL"; empty for a flag (bool) and for positionals
  std::string help = {};        ///< one sentence, without a trailing period
  OptionTarget target = {};
  std::string default_text = {};          ///< shown in help; empty: none
  std::vector<std::string> choices = {};  ///< allowed values; empty: any
  bool takes_auto = false;                ///< "auto" is another way to write 0
  bool shows_choices = true;              ///< help lists them
  bool is_list = false;                   ///< a string: several of `choices`, with commas
  bool required = false;
  bool is_path = false;                  ///< completion offers file names
  bool is_config = false;                ///< a file that has values for the others
  bool only_typed = false;               ///< has no place in such a file
  bool is_secret = false;                ///< never printed
  std::string group = {};                ///< heading in help; empty: "Options"
  bool is_model = false;                 ///< completion offers file names and names in the store
  std::optional<double> min_value = {};  ///< numbers: the least allowed
  std::optional<double> max_value = {};  ///< numbers: the largest allowed
};

struct Example {
  std::string command;
  std::string what;
};

struct Command {
  std::string name;
  std::string summary;  ///< one line, for the list of commands
  /// Paragraphs, for --help and the man page. A line that begins with a space keeps its shape; the
  /// first line of all is none.
  std::string description;
  std::vector<Option> options;
  std::vector<Example> examples;
  std::function<int()> run;     ///< returns an exit code
  std::shared_ptr<void> state;  ///< owns what the options' targets point to
};

/// The spellings of an option: "-m,--model" gives {"-m", "--model"}.
std::vector<std::string> option_names(const Option& option);

/// The name used in messages: the first `--` spelling, else the first one.
std::string primary_name(const Option& option);

bool is_positional(const Option& option);

/// A flag takes no value.
bool is_flag(const Option& option);

/// Whether all values of the option are kept, not the last one alone.
bool keeps_all_values(const Option& option);

/// The parts of a list with commas: "a,b" gives {"a", "b"}, "" gives {""}.
std::vector<std::string> split_list(const std::string& text);

/// `--json`, the same in every command that has a result.
Option json_option(bool* target);

/// Every command, in the order of the help text. One line a command (commands.cc).
std::vector<Command> all_commands();

}  // namespace headrace::cli
