// See completion.h.
#include "cli/completion.h"

#include <algorithm>

#include "base/check.h"

namespace headrace::cli {
namespace {

/// What may follow an option, or be a positional.
enum class Values { words, files, models, anything };

Values values_of(const Option& option) {
  if (!option.choices.empty()) return Values::words;
  if (option.is_model) return Values::models;
  if (option.is_path) return Values::files;
  return Values::anything;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : separator) + word;
  return out;
}

std::string all_names(const Command& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) {
    if (is_positional(option)) continue;
    for (auto& name : option_names(option)) names.push_back(std::move(name));
  }
  names.emplace_back("-h");
  names.emplace_back("--help");
  return joined(names, " ");
}

std::string command_names(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(command.name);
  return joined(names, " ");
}

/// `text` in single quotes for bash and zsh.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// --- bash

/// The statement that fills COMPREPLY from the lines of these commands; names may have spaces.
std::string bash_fill(const std::string& commands) {
  return "mapfile -t COMPREPLY < <(" + commands + ")";
}

std::string bash_words(const std::string& quoted_words) {
  return "compgen -W " + quoted_words + " -- \"$cur\"";
}

std::string bash_reply(const Option& option) {
  static const std::string kFiles = "compgen -f -- \"$cur\"";
  switch (values_of(option)) {
    case Values::words:
      return bash_fill(bash_words(shell_quoted(joined(option.choices, " "))));
    case Values::models:
      return bash_fill(bash_words("\"$(headrace list --names 2>/dev/null)\"") + "; " + kFiles);
    case Values::files:
      return bash_fill(kFiles);
    default:
      return "COMPREPLY=()";
  }
}

std::string bash_command(const Command& command) {
  std::string out = "    " + command.name + ")\n      case \"$prev\" in\n";
  std::string positional = "COMPREPLY=()";
  for (const auto& option : command.options) {
    if (is_positional(option)) {
      positional = bash_reply(option);
    } else if (!is_flag(option)) {
      out += "        " + joined(option_names(option), "|") + ") " + bash_reply(option) +
             "; return ;;\n";
    }
  }
  if (command.name == "help") {
    positional = bash_fill(bash_words("\"$commands\""));
  }
  out += "      esac\n      if [[ $cur == -* ]]; then\n        " +
         bash_fill(bash_words(shell_quoted(all_names(command)))) + "\n      else\n        " +
         positional + "\n      fi ;;\n";
  return out;
}

std::string bash_script(const std::vector<Command>& commands) {
  std::string out =
      "# bash completion for headrace; made by: headrace completion bash\n"
      "_headrace() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"\"\n"
      "  ((COMP_CWORD > 0)) && prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  local commands=" +
      shell_quoted(command_names(commands)) +
      "\n  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n    " +
      bash_fill(bash_words("\"$commands --help --version\"")) +
      "\n"
      "    return\n"
      "  fi\n"
      "  case \"${COMP_WORDS[1]}\" in\n";
  for (const auto& command : commands) out += bash_command(command);
  return out + "  esac\n}\ncomplete -o filenames -F _headrace headrace\n";
}

// --- zsh

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const Option& option, bool lists_commands) {
  if (lists_commands) return "_headrace_commands";
  switch (values_of(option)) {
    case Values::words:
      return "(" + joined(option.choices, " ") + ")";
    case Values::models:
      return "_headrace_models";
    case Values::files:
      return "_files";
    default:
      return " ";
  }
}

std::string zsh_command(const Command& command) {
  std::string out = "    " + command.name + ")\n      _arguments";
  for (const auto& option : command.options) {
    const std::string action = zsh_action(option, command.name == "help");
    if (is_positional(option)) {
      out += " \\\n        " + shell_quoted("::" + zsh_text(option.names) + ":" + action);
      continue;
    }
    for (const auto& name : option_names(option)) {
      // `*` lets it be given again: the last value counts.
      std::string spec = "*" + name + "[" + zsh_text(option.help) + "]";
      if (!is_flag(option)) spec += ":" + zsh_text(option.value_name) + ":" + action;
      out += " \\\n        " + shell_quoted(spec);
    }
  }
  return out + " \\\n        '(- *)'{-h,--help}'[show the page of this command]' ;;\n";
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string out =
      "#compdef headrace\n"
      "# zsh completion for headrace; made by: headrace completion zsh\n"
      "_headrace_commands() {\n  local -a commands=(\n";
  for (const auto& command : commands) {
    out += "    " + shell_quoted(command.name + ":" + zsh_text(command.summary)) + "\n";
  }
  out +=
      "  )\n  _describe command commands\n}\n"
      "_headrace_models() {\n"
      "  local -a models=(${(f)\"$(headrace list --names 2>/dev/null)\"})\n"
      "  _alternative 'models:model:compadd -a models' 'files:file:_files'\n}\n"
      "_headrace() {\n"
      "  if ((CURRENT == 2)); then\n"
      "    _headrace_commands\n"
      "    compadd -- --help --version\n"
      "    return\n"
      "  fi\n"
      "  local name=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $name in\n";
  for (const auto& command : commands) out += zsh_command(command);
  return out +
         "  esac\n}\n"
         "if [[ $funcstack[1] == _headrace ]]; then\n  _headrace \"$@\"\nelse\n"
         "  compdef _headrace headrace\nfi\n";
}

// --- fish

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_values(const Option& option, bool lists_commands, const std::string& names) {
  if (lists_commands) return " -a " + fish_quoted(names);
  switch (values_of(option)) {
    case Values::words:
      return " -a " + fish_quoted(joined(option.choices, " "));
    case Values::models:
      return " -F -a '(headrace list --names 2>/dev/null)'";
    case Values::files:
      return " -F";
    default:
      return "";
  }
}

std::string fish_option(const Option& option, const std::string& values) {
  if (is_positional(option)) return values;
  std::string out;
  for (const auto& name : option_names(option)) {
    if (name.rfind("--", 0) == 0) {
      out += " -l " + name.substr(2);
    } else if (name.size() == 2) {
      out += " -s " + name.substr(1);
    } else {
      out += " -o " + name.substr(1);
    }
  }
  // -x: a value, and never a file name.
  const bool files = values_of(option) == Values::files || values_of(option) == Values::models;
  if (!is_flag(option)) out += (files ? " -r" : " -x") + values;
  return out + " -d " + fish_quoted(option.help);
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string out =
      "# fish completion for headrace; made by: headrace completion fish\n"
      "complete -c headrace -f\n"
      "complete -c headrace -n __fish_use_subcommand -l help -s h -d 'Show the commands'\n"
      "complete -c headrace -n __fish_use_subcommand -l version -d 'Show the version'\n";
  const std::string names = command_names(commands);
  for (const auto& command : commands) {
    out += "complete -c headrace -n __fish_use_subcommand -a " + command.name + " -d " +
           fish_quoted(command.summary) + "\n";
    const std::string head =
        "complete -c headrace -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const auto& option : command.options) {
      const std::string values = fish_values(option, command.name == "help", names);
      const std::string rest = fish_option(option, values);
      if (!rest.empty()) out += head + rest + "\n";
    }
    out += head + " -s h -l help -d 'Show the page of this command'\n";
  }
  return out;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<Command>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  HEADRACE_CHECK_EQ(shell, "fish");
  return fish_script(commands);
}

}  // namespace headrace::cli
