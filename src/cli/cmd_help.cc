// headrace help, man, completion: the command line described by itself.
#include <algorithm>

#include "base/nearest_word.h"
#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/man_page.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

int show_help(const std::string& name) {
  const auto width =
      static_cast<size_t>(std::clamp(terminal_columns(StandardStream::output, 80), 60, 100));
  const auto commands = all_commands();
  if (name.empty()) {
    print(overview_help(commands, width, colors_on_stdout()));
    return kDone;
  }
  std::vector<std::string> known;
  for (const auto& command : commands) {
    known.push_back(command.name);
    if (command.name != name) continue;
    print(command_help(command, width, colors_on_stdout()));
    return kDone;
  }
  Error error{ErrorCode::invalid_argument, "unknown command '" + printable(name, 60) + "'", "", ""};
  const std::string meant = nearest_word(name, known);
  if (!meant.empty()) error.hint = "did you mean " + meant + "?";
  return fail_usage("", error, false);
}

}  // namespace

Command help_command() {
  auto name = std::make_shared<std::string>();
  Command command;
  command.name = "help";
  command.summary = "Show the page of a command";
  command.options = {
      {.names = "command", .help = "The command; none: the list of all", .target = name.get()}};
  command.examples = {{"headrace help pull", ""}};
  command.run = [name = name.get()] { return show_help(*name); };
  command.state = std::move(name);
  return command;
}

Command man_command() {
  Command command;
  command.name = "man";
  command.summary = "Print the manual page";
  command.description = "Writes the manual page of all commands in mdoc, the language of man(1).";
  command.examples = {{"headrace man | man -l -", "read it"},
                      {"headrace man > headrace.1", "keep it"}};
  command.run = [] {
    print(man_page(all_commands()));
    return kDone;
  };
  return command;
}

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "Print a shell's completion script";
  command.description = "Writes a script that teaches a shell this program's commands and options.";
  command.options = {{.names = "shell",
                      .help = "The shell",
                      .target = shell.get(),
                      .choices = {"bash", "zsh", "fish"},
                      .required = true}};
  command.examples = {
      {"source <(headrace completion bash)", "in bash, for this session"},
      {"headrace completion zsh > ~/.zfunc/_headrace", "in a folder of zsh's $fpath"},
      {"headrace completion fish > ~/.config/fish/completions/headrace.fish", ""}};
  command.run = [shell = shell.get()] {
    print(completion_script(*shell, all_commands()));
    return kDone;
  };
  command.state = std::move(shell);
  return command;
}

}  // namespace headrace::cli
