// See parser.h. CLI11 gets names and arity only; values are converted by values.cc, so that the
// messages are ours. CLI11's exceptions end here.
#include "cli/parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "base/nearest_word.h"
#include "cli/argv.h"
#include "cli/config_file.h"
#include "cli/terminal_text.h"
#include "cli/values.h"

namespace headrace::cli {
namespace {

constexpr int kMostPositionals = 1 << 20;

/// An option with what CLI11 collected for it.
struct Slot {
  const Option* option = nullptr;
  CLI::Option* parsed = nullptr;
};

std::string parser_names(const Option& option) {
  std::set<std::string> seen;
  std::string names;
  for (const auto& name : option_names(option)) {
    const std::string known = parser_name(name);
    if (!seen.insert(known).second) continue;
    if (!names.empty()) names += ',';
    names += known;
  }
  return names;
}

std::vector<Slot> declare(CLI::App& app, const Command& command) {
  std::vector<Slot> slots;
  for (const auto& option : command.options) {
    const std::string names = parser_names(option);
    CLI::Option* parsed = nullptr;
    if (is_flag(option)) {
      parsed = app.add_flag(names);
    } else {
      const auto accept = [](const CLI::results_t&) { return true; };
      parsed = app.add_option(names, accept);
      parsed->type_size(1)->expected(1)->allow_extra_args(false);
      if (is_positional(option) && keeps_all_values(option)) {
        parsed->expected(1, kMostPositionals)->allow_extra_args(true);
      }
    }
    parsed->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    slots.push_back({&option, parsed});
  }
  return slots;
}

std::string shown_name(const Option& option) {
  if (!is_positional(option)) return primary_name(option);
  std::string name = option.names;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return name;
}

Error unknown_argument(const Command& command, const std::vector<std::string>& rest) {
  const auto is_option = [](const std::string& arg) { return arg.size() > 1 && arg[0] == '-'; };
  const auto found = std::find_if(rest.begin(), rest.end(), is_option);
  if (found == rest.end()) {
    return Error{ErrorCode::invalid_argument,
                 "unexpected argument '" + printable(rest.front(), 60) + "'", "",
                 "put a value with spaces in quotes"};
  }
  const std::string name = found->substr(0, found->find('='));
  std::vector<std::string> known = {"--help"};
  for (const auto& option : command.options) {
    if (is_positional(option)) continue;
    for (auto& spelling : option_names(option)) known.push_back(std::move(spelling));
  }
  const std::string meant = nearest_word(name, known);
  Error error{ErrorCode::invalid_argument, "unknown option", printable(name, 60), ""};
  if (!meant.empty()) error.hint = "did you mean " + meant + "?";
  return error;
}

/// The values of the config file that was named, for options that were not. Those it has are added
/// to `filled`.
Result<void> store_config(const Command& command, const std::vector<Slot>& slots,
                          std::set<const Option*>& filled) {
  const auto config = std::find_if(slots.begin(), slots.end(), [](const Slot& slot) {
    return slot.option->is_config && slot.parsed->count() > 0;
  });
  if (config == slots.end()) return {};
  return apply_config_file(command, config->parsed->results().back(), [&](const Option& option) {
    filled.insert(&option);
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return slot.option == &option && slot.parsed->count() > 0;
    });
  });
}

/// `spellings`: as in NormalizedArgs. `is_filled`: by a config file.
Result<void> store(const Slot& slot, const std::map<std::string, std::string>& spellings,
                   bool is_filled) {
  const Option& option = *slot.option;
  const auto& texts = slot.parsed->results();
  if (slot.parsed->count() == 0) {
    if (!option.required || is_filled) return {};
    return Error{ErrorCode::invalid_argument,
                 is_positional(option) ? "missing argument" : "this option is required",
                 shown_name(option), ""};
  }
  const bool list = keeps_all_values(option);
  for (size_t i = list || is_flag(option) ? 0 : texts.size() - 1; i < texts.size(); ++i) {
    auto stored = store_value(option, texts[i]);
    if (stored.ok()) continue;
    const auto typed = spellings.find(option.names);
    return std::move(stored).error().at(typed == spellings.end() ? shown_name(option)
                                                                 : printable(typed->second, 60));
  }
  return {};
}

}  // namespace

Result<Parsed> parse_args(const Command& command, const std::vector<std::string>& args) {
  const auto end_of_options = std::find(args.begin(), args.end(), "--");
  auto normalized = normalize_args(command, args);
  if (!normalized) {
    // Whoever asks for help gets it, whatever else is on the line.
    const bool help = std::any_of(args.begin(), end_of_options, [](const std::string& arg) {
      return arg == "--help" || arg == "-h";
    });
    if (help) return Parsed{true, {}};
    return std::move(normalized).error();
  }
  std::vector<std::string> rest;
  std::vector<Slot> slots;
  Parsed parsed;
  CLI::App app;
  try {
    app.set_help_flag();
    app.set_config();
    app.allow_extras();
    const CLI::Option* help = app.add_flag("-h,--help");
    slots = declare(app, command);
    std::vector<std::string> reversed(normalized->args.rbegin(), normalized->args.rend());
    app.parse(std::move(reversed));
    parsed.help = help->count() > 0;
    rest = app.remaining();
    // CLI11 counts the mark between options and positionals among the rest.
    if (const auto mark = std::find(rest.begin(), rest.end(), "--"); mark != rest.end()) {
      rest.erase(mark);
    }
  } catch (const CLI::ParseError& error) {
    // Unknown options and missing values are found elsewhere; this is for what is left.
    return Error{ErrorCode::invalid_argument, printable(error.what(), 200), "", ""};
  } catch (const CLI::Error& error) {
    return Error{ErrorCode::internal, std::string("command description: ") + error.what(),
                 command.name, ""};
  }
  if (parsed.help) return parsed;
  if (!rest.empty()) return unknown_argument(command, rest);
  std::set<const Option*> filled;
  HEADRACE_TRY(store_config(command, slots, filled));
  for (const auto& slot : slots) {
    HEADRACE_TRY(store(slot, normalized->spellings, filled.count(slot.option) > 0));
  }
  parsed.warnings = std::move(normalized->warnings);
  return parsed;
}

}  // namespace headrace::cli
