// See command.h.
#include "cli/command.h"

#include <algorithm>

namespace headrace::cli {

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> option_names(const Option& option) {
  std::vector<std::string> names = split_list(option.names);
  std::erase(names, "");
  return names;
}

std::string primary_name(const Option& option) {
  const auto names = option_names(option);
  for (const auto& name : names) {
    if (name.rfind("--", 0) == 0) return name;
  }
  return names.empty() ? std::string() : names.front();
}

bool is_positional(const Option& option) {
  return !option.names.empty() && option.names.front() != '-';
}

bool is_flag(const Option& option) {
  return std::holds_alternative<bool*>(option.target);
}

bool keeps_all_values(const Option& option) {
  return std::holds_alternative<std::vector<std::string>*>(option.target) ||
         std::holds_alternative<std::vector<int64_t>*>(option.target);
}

Option json_option(bool* target) {
  Option option;
  option.names = "--json";
  option.help = "Print the result as one JSON value on standard output";
  option.target = target;
  option.group = "Output";
  return option;
}

}  // namespace headrace::cli
