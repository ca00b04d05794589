// See man_page.h. Format: mdoc(7) as mandoc and groff read it.
#include "cli/man_page.h"

#include <map>

#include "base/cpu_features.h"
#include "cli/argv.h"
#include "cli/help.h"
#include "cli/terminal_text.h"
#include "cli/version.h"

namespace headrace::cli {
namespace {

/// Text as roff input: no line is a request, backslashes and hyphens are themselves.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    line_start = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

/// A paragraph as roff input: lines of moderate length, each sentence beginning a new one.
std::string filled(const std::string& text) {
  std::string broken;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool sentence_ends = i > 0 && (text[i - 1] == '.' || text[i - 1] == '?');
    broken += text[i] == ' ' && sentence_ends ? '\n' : text[i];
  }
  return roff(wrapped(broken, 72, 0));
}

/// An argument of a macro: in quotes, so that no word in it is taken for a macro.
std::string macro_argument(const std::string& text) {
  std::string out = "\"";
  for (const char c : roff(text)) {
    if (c == '"') {
      out += "\\(dq";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "\"";
}

/// Paragraphs; lines that begin with spaces keep their shape.
std::string paragraphs(const std::string& text) {
  std::string out;
  bool in_display = false;
  bool pending_break = false;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const bool display = !line.empty() && line.front() == ' ';
    if (in_display && !display) out += ".Ed\n";
    if (display && !in_display) out += ".Bd -literal -offset indent\n";
    in_display = display;
    if (line.empty()) {
      pending_break = true;
      continue;
    }
    // A display has a break of its own.
    if (pending_break && !display) out += ".Pp\n";
    pending_break = false;
    out += (display ? roff(line.substr(line.find_first_not_of(' '))) : filled(line)) + "\n";
  }
  if (in_display) out += ".Ed\n";
  return out;
}

std::string option_items(const OptionGroup& group) {
  std::string out = group.heading + ":\n.Bl -tag -width Ds\n";
  for (const Option* option : group.options) {
    out += ".It Sy " + macro_argument(option_title(*option)) + "\n";
    out += filled(option_help_text(*option) + ".") + "\n";
  }
  return out + ".El\n";
}

std::string command_section(const Command& command) {
  std::string out = ".Ss headrace " + command.name + "\n";
  out += ".Nm headrace Cm " + macro_argument(usage_text(command)) + "\n.Pp\n";
  out += filled(command.summary + ".") + "\n";
  if (!command.description.empty()) out += ".Pp\n" + paragraphs(command.description);
  for (const auto& group : option_groups(command)) out += ".Pp\n" + option_items(group);
  if (command.examples.empty()) return out;
  out += ".Pp\nExamples:\n.Bd -literal -offset indent\n";
  for (const auto& example : command.examples) {
    if (!example.what.empty()) out += "# " + roff(example.what) + "\n";
    out += roff(example.command) + "\n";
  }
  return out + ".Ed\n";
}

/// The commands that have an option of this name: "batch and bench".
std::string takers(const std::vector<Command>& commands, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& command : commands) {
    if (takes_option(command, name)) names.push_back(command.name);
  }
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return out;
}

/// Flags of other engines that have no effect, apart from those that have one in some commands.
std::string foreign_spellings(const std::vector<Command>& commands) {
  std::map<std::string, std::string> flags;  // by the commands that take them
  for (const auto& flag : foreign_flags()) {
    if (flag.refused) continue;
    std::string& list = flags[takers(commands, flag.name)];
    list += (list.empty() ? "" : ", ") + flag.name;
  }
  std::string out;
  for (const auto& [by, list] : flags) {
    out += ".Pp\n" +
           filled(by.empty() ? "Accepted without effect, with a warning: " + list + "."
                             : "Options of " + by +
                                   ", and accepted without effect, with a warning, in "
                                   "the other commands: " +
                                   list + ".") +
           "\n";
  }
  return out;
}

std::string other_spellings(const std::vector<Command>& commands) {
  std::string out =
      ".Sh SPELLINGS OF OTHER ENGINES\n"
      "Where a command has one spelling of a line, it takes the others as well.\n"
      "Underscores in long names are read as hyphens.\n"
      ".Bd -literal -offset indent\n";
  for (const auto& group : spelling_groups()) {
    if (group.size() < 2) continue;
    std::string line;
    for (const auto& name : group) line += (line.empty() ? "" : " ") + name;
    out += roff(line) + "\n";
  }
  return out + ".Ed\n" + foreign_spellings(commands);
}

/// "reference, avx2 or avx512;" of this architecture.
std::string isa_list() {
  const auto names = isa_names();
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_last = i + 1 == names.size();
    const bool is_before_last = i + 2 == names.size();
    if (is_last) out += "or\n";
    out += ".Li " + names[i] + (is_last ? " ;\n" : is_before_last ? "\n" : " ,\n");
  }
  return out;
}

}  // namespace

std::string man_page(const std::vector<Command>& commands) {
  std::string out =
      std::string(".Dd ") + kReleaseDate + "\n.Dt HEADRACE 1\n.Os Headrace " + kVersion + "\n";
  out +=
      ".Sh NAME\n.Nm headrace\n.Nd run large language models on this machine\n"
      ".Sh SYNOPSIS\n.Nm headrace\n.Ar command\n.Op Ar options\n"
      ".Sh DESCRIPTION\n"
      ".Nm\nruns large language models from GGUF files on the processor.\n"
      "Results go to standard output, messages to standard error.\n"
      "With\n.Fl \\-json\na command prints one JSON value; a failure prints\n"
      ".Dq Li {\\(dqerror\\(dq: {\\(dqcode\\(dq, \\(dqmessage\\(dq, \\(dqwhere\\(dq, "
      "\\(dqhint\\(dq}} .\n"
      ".Sh COMMANDS\n";
  for (const auto& command : commands) out += command_section(command);
  out += other_spellings(commands);
  out +=
      ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
      ".It Ev HEADRACE_HOME\nThe store's folder; models are in its\n.Pa models\nfolder.\n"
      ".It Ev HEADRACE_ISA\nThe instruction set:\n" +
      isa_list() +
      "by default the best of the machine but\n.Li amx ,\nwhich is faster with many tokens at a "
      "time only.\n"
      ".It Ev NO_COLOR\nIf set, no colours.\n"
      ".It Ev PIP_INDEX_URL , PIP_FIND_LINKS , PIP_NO_INDEX\n"
      "pip's own settings hold for\n.Ic headrace pull .\n"
      ".El\n"
      ".Sh FILES\n.Bl -tag -width Ds\n"
      ".It Pa ~/.local/share/headrace/models\nThe store, unless\n.Ev HEADRACE_HOME\nor\n"
      ".Ev XDG_DATA_HOME\nsays otherwise.\n.El\n"
      ".Sh EXIT STATUS\n0 if the work is done, 1 if it failed, 2 if the usage was wrong.\n";
  return out;
}

}  // namespace headrace::cli
