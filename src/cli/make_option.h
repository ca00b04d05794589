// A short way to write an Option.
#pragma once

#include <string>
#include <utility>

#include "cli/command.h"

namespace headrace::cli {

/// An option with its help; flags and positionals have no value name.
inline Option make_option(std::string names, std::string value_name, std::string help,
                          OptionTarget target, std::string default_text = "") {
  Option option;
  option.names = std::move(names);
  option.value_name = std::move(value_name);
  option.help = std::move(help);
  option.target = target;
  option.default_text = std::move(default_text);
  return option;
}

/// The same for an option whose value is a file.
inline Option path_option(std::string names, std::string value_name, std::string help,
                          OptionTarget target, std::string default_text = "") {
  Option option = make_option(std::move(names), std::move(value_name), std::move(help), target,
                              std::move(default_text));
  option.is_path = true;
  return option;
}

}  // namespace headrace::cli
