// See help.h.
#include "cli/help.h"

#include <algorithm>

#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

constexpr size_t kHelpColumn = 28;

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string heading(const std::string& text, bool colors) {
  return "\n" + styled(text + ":", Style::bold, colors) + "\n";
}

/// A title in the left column, the text beside it, or below it where the title is long.
std::string row(const std::string& title, const std::string& text, size_t width) {
  std::string out = "  " + title;
  if (out.size() + 2 > kHelpColumn) {
    out += "\n" + std::string(kHelpColumn, ' ');
  } else {
    out.append(kHelpColumn - out.size(), ' ');
  }
  return out + wrapped(text, width, kHelpColumn) + "\n";
}

}  // namespace

std::string option_title(const Option& option) {
  if (is_positional(option)) return upper(option.names);
  std::string title;
  for (const auto& name : option_names(option)) title += (title.empty() ? "" : ", ") + name;
  if (!option.value_name.empty()) title += " " + option.value_name;
  return title;
}

std::string option_help_text(const Option& option) {
  std::vector<std::string> notes;
  if (option.required) notes.emplace_back("required");
  if (!option.choices.empty() && option.shows_choices) {
    std::string list = option.is_list ? "one or more of: " : "one of: ";
    for (size_t i = 0; i < option.choices.size(); ++i) {
      list += (i > 0 ? ", " : "") + option.choices[i];
    }
    notes.push_back(list);
  }
  if (!option.default_text.empty()) notes.push_back("default: " + option.default_text);
  std::string text = option.help;
  for (size_t i = 0; i < notes.size(); ++i) text += (i == 0 ? " (" : "; ") + notes[i];
  return notes.empty() ? text : text + ")";
}

std::vector<OptionGroup> option_groups(const Command& command) {
  std::vector<OptionGroup> groups;
  for (const auto& option : command.options) {
    std::string name = option.group;
    if (name.empty()) name = is_positional(option) ? "Arguments" : "Options";
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const OptionGroup& group) { return group.heading == name; });
    if (found == groups.end()) found = groups.insert(groups.end(), OptionGroup{name, {}});
    found->options.push_back(&option);
  }
  return groups;
}

std::string usage_text(const Command& command) {
  std::string text = command.name + " [options]";
  for (const auto& option : command.options) {
    if (!is_positional(option)) {
      if (option.required) text += " " + primary_name(option) + " " + option.value_name;
      continue;
    }
    const std::string name = upper(option.names);
    text += option.required ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string command_help(const Command& command, size_t width, bool colors) {
  std::string out = styled("headrace " + command.name, Style::bold, colors) + ": " +
                    command.summary + "\n\n" + styled("Usage:", Style::bold, colors) +
                    " headrace " + usage_text(command) + "\n";
  if (!command.description.empty()) out += "\n" + wrapped(command.description, width, 0) + "\n";
  for (const auto& group : option_groups(command)) {
    out += heading(group.heading, colors);
    for (const Option* option : group.options) {
      out += row(option_title(*option), option_help_text(*option), width);
    }
  }
  if (command.options.empty()) out += heading("Options", colors);
  out += row("-h, --help", "Show this text", width);
  if (!command.examples.empty()) out += heading("Examples", colors);
  for (const auto& example : command.examples) {
    out += "  " + styled(example.command, Style::cyan, colors) + "\n";
    if (!example.what.empty()) out += "      " + wrapped(example.what, width, 6) + "\n";
  }
  return out;
}

std::string overview_help(const std::vector<Command>& commands, size_t width, bool colors) {
  std::string out = styled("headrace", Style::bold, colors) +
                    ": runs large language models on this machine\n\n" +
                    styled("Usage:", Style::bold, colors) + " headrace COMMAND [options]\n";
  out += heading("Commands", colors);
  for (const auto& command : commands) {
    std::string title = "  " + command.name;
    title.append(title.size() < 16 ? 16 - title.size() : 1, ' ');
    out += title + wrapped(command.summary, width, 16) + "\n";
  }
  out += heading("Options", colors);
  out += "  -h, --help    Show this text; after a command, that command's page\n";
  out += "  --version     Show the version; with --json as JSON\n";
  out += heading("Examples", colors);
  out += "  headrace run -p \"Why is the sky blue?\"\n";
  out += "  headrace chat\n";
  out += "\nExit codes: 0 done, 1 the work failed, 2 wrong usage.\n";
  return out;
}

}  // namespace headrace::cli
