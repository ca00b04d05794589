// See frame.h.
#include "cli/frame.h"

#include <algorithm>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/check.h"
#include "base/nearest_word.h"
#include "base/os/terminal.h"
#include "cli/help.h"
#include "cli/parser.h"
#include "cli/report.h"
#include "cli/terminal_text.h"
#include "cli/version.h"

namespace headrace::cli {
namespace {

size_t page_width() {
  return static_cast<size_t>(std::clamp(terminal_columns(StandardStream::output, 80), 60, 100));
}

bool contains(const std::vector<std::string>& args, const std::string& wanted) {
  return std::find(args.begin(), args.end(), wanted) != args.end();
}

int print_version(bool json) {
  if (json) {
    print_json({{"name", "headrace"},
                {"version", kVersion},
                {"build_type", kBuildType},
                {"compiler", kCompiler}});
  } else {
    print(std::string("headrace ") + kVersion + "\n");
  }
  return kDone;
}

Error unknown_command(const std::string& word, const std::vector<Command>& commands) {
  std::vector<std::string> known = {"--help", "--version"};
  for (const auto& command : commands) known.push_back(command.name);
  const bool option = word.rfind('-', 0) == 0;
  Error error{ErrorCode::invalid_argument,
              option ? "expected a command first, got the option '" + printable(word, 60) + "'"
                     : "unknown command '" + printable(word, 60) + "'",
              "", ""};
  const std::string meant = nearest_word(word, known);
  if (!meant.empty()) error.hint = "did you mean " + meant + "?";
  return error;
}

int run_command(const Command& command, const std::vector<std::string>& args) {
  // Known before parsing, so that wrong usage is reported as JSON too.
  const bool json = contains(args, "--json");
  const auto parsed = parse_args(command, args);
  if (!parsed) return fail_usage(command.name, parsed.error(), json);
  if (parsed->help) {
    print(command_help(command, page_width(), colors_on_stdout()));
    return kDone;
  }
  for (const auto& warning : parsed->warnings) warn(warning);
  return command.run();
}

int dispatch(const std::vector<std::string>& args, const std::vector<Command>& commands) {
  if (args.empty()) {
    const Error error{ErrorCode::invalid_argument, "expected a command", "",
                      "for an answer at once: headrace run -p \"Why is the sky blue?\""};
    return fail_usage("", error, false);
  }
  const std::string& word = args.front();
  if (word == "--help" || word == "-h") {
    print(overview_help(commands, page_width(), colors_on_stdout()));
    return kDone;
  }
  const bool json = contains(args, "--json");
  if (word == "--version" || word == "-V" || (word == "--json" && contains(args, "--version"))) {
    return print_version(json);
  }
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& command) { return command.name == word; });
  if (found == commands.end()) return fail_usage("", unknown_command(word, commands), json);
  return run_command(*found, {args.begin() + 1, args.end()});
}

}  // namespace

int run_program(const std::vector<std::string>& args, std::vector<Command> commands) {
  const bool json = contains(args, "--json");
  Error error;
  try {
    const int code = dispatch(args, commands);
    if (flush_output()) return code;
    error = Error{ErrorCode::io_error, "cannot write to standard output", "", ""};
    return fail(error, false);
  } catch (const std::bad_alloc&) {
    error = Error{ErrorCode::resource_exhausted, "out of memory", "",
                  "use a smaller model, or give a smaller context with -c"};
  } catch (const InternalError& fault) {
    error = Error{ErrorCode::internal, std::string("a bug of Headrace: ") + fault.what(), "", ""};
  } catch (const std::exception& fault) {
    error = Error{ErrorCode::internal, std::string("unexpected fault: ") + fault.what(), "", ""};
  }
  return fail(error, json);
}

}  // namespace headrace::cli
