// See command.h.
#include "cli/command.h"

namespace headrace::cli {

std::vector<std::string> option_names(const Option& option) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (begin <= option.names.size()) {
    size_t end = option.names.find(',', begin);
    if (end == std::string::npos) end = option.names.size();
    if (end > begin) names.push_back(option.names.substr(begin, end - begin));
    begin = end + 1;
  }
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

Option json_option(bool* target) {
  Option option;
  option.names = "--json";
  option.help = "Print the result as one JSON value on standard output";
  option.target = target;
  option.group = "Output";
  return option;
}

}  // namespace headrace::cli
