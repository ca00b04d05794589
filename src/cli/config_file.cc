// See config_file.h.
#include "cli/config_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <limits>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "base/nearest_word.h"
#include "base/os/input_stream.h"
#include "cli/argv.h"
#include "cli/terminal_text.h"
#include "cli/values.h"

namespace headrace::cli {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;

std::string key_of(const Option& option) {
  const std::string name = primary_name(option);
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

bool belongs_in_file(const Option& option) {
  return !is_positional(option) && !option.only_typed && !option.is_config;
}

/// What a value may be, in the words of the format.
std::string expected_of(const Option& option) {
  struct Kind {
    std::string operator()(const bool*) const { return "true or false"; }
    std::string operator()(const std::vector<std::string>*) const {
      return "text in quotes, or a list of such";
    }
    std::string operator()(const std::vector<int64_t>*) const {
      return "a whole number, or a list of such";
    }
    std::string operator()(const int64_t*) const { return "a whole number without quotes"; }
    std::string operator()(const std::optional<int64_t>*) const {
      return "a whole number without quotes";
    }
    std::string operator()(const std::optional<uint64_t>*) const { return "a whole number"; }
    std::string operator()(const double*) const { return "a number without quotes"; }
    std::string operator()(const std::optional<double>*) const { return "a number without quotes"; }
    std::string operator()(const std::string*) const { return "text in quotes"; }
    std::string operator()(const std::optional<std::string>*) const { return "text in quotes"; }
  };
  return std::visit(Kind{}, option.target);
}

/// Whether a node has the type that the option's target wants, lists aside.
bool fits(const Option& option, const toml::node& node) {
  struct Fits {
    const Option& option;
    const toml::node& node;

    bool is_auto() const { return option.takes_auto && node.value<std::string>() == "auto"; }
    bool operator()(const bool*) const { return node.is_boolean(); }
    bool operator()(const std::vector<std::string>*) const { return node.is_string(); }
    bool operator()(const std::vector<int64_t>*) const {
      return node.is_integer() || node.is_string();
    }
    bool operator()(const int64_t*) const { return node.is_integer() || is_auto(); }
    bool operator()(const std::optional<int64_t>*) const { return node.is_integer() || is_auto(); }
    // Those over 2^63 are no numbers of TOML.
    bool operator()(const std::optional<uint64_t>*) const {
      return node.is_integer() || node.is_string();
    }
    bool operator()(const double*) const { return node.is_number() || is_auto(); }
    bool operator()(const std::optional<double>*) const { return node.is_number() || is_auto(); }
    bool operator()(const std::string*) const { return node.is_string(); }
    bool operator()(const std::optional<std::string>*) const { return node.is_string(); }
  };
  return std::visit(Fits{option, node}, option.target);
}

/// As it would be typed.
std::string typed_text(const Option& option, const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return option.takes_auto && text->get() == "auto" ? "0" : text->get();
  }
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  return fmt::format("{}", node.value_or(0.0));
}

class Reader {
 public:
  Reader(const Command& command, std::string name,
         const std::function<bool(const Option&)>& is_given)
      : command_(command), name_(std::move(name)), is_given_(is_given) {}

  Result<void> run(std::string_view text) {
    toml::table table;
    try {
      table = toml::parse(text, name_);
    } catch (const toml::parse_error& error) {
      return Error{ErrorCode::invalid_argument, printable(error.description(), 300),
                   where(error.source().begin), ""};
    }
    for (const auto& [key, node] : table) HEADRACE_TRY(take(key, node));
    return {};
  }

 private:
  std::string where(const toml::source_position& position) const {
    return fmt::format("{}:{}", name_, position.line);
  }
  Error wrong(const toml::key& key, std::string message, std::string hint = "") const {
    return {ErrorCode::invalid_argument, printable(key.str(), 60) + ": " + std::move(message),
            where(key.source().begin), std::move(hint)};
  }

  Error unknown(const toml::key& key, const toml::node& node) const {
    if (node.is_table()) {
      return wrong(key, "there are no sections here", "put all settings before the first [...]");
    }
    std::vector<std::string> known;
    for (const Option& option : command_.options) {
      if (belongs_in_file(option)) known.push_back(key_of(option));
    }
    const std::string meant = nearest_word(key.str(), known);
    return wrong(key, "unknown setting", meant.empty() ? "" : "did you mean " + meant + "?");
  }

  Result<void> take(const toml::key& key, const toml::node& node) {
    const std::string name(key.str());
    const Option* option = spelled_option(command_, (name.size() == 1 ? "-" : "--") + name);
    if (option == nullptr) option = spelled_option(command_, "-" + name);
    if (option == nullptr) return unknown(key, node);
    if (!belongs_in_file(*option)) return wrong(key, "is for the command line alone");
    if (const auto [before, is_new] = taken_.try_emplace(option->names, name); !is_new) {
      return wrong(key, "is the same setting as " + before->second);
    }
    if (is_given_(*option)) return check(key, *option, node);
    return store(key, *option, node);
  }

  /// The types of what is not used must be right all the same.
  Result<void> check(const toml::key& key, const Option& option, const toml::node& node) const {
    const auto* list = node.as_array();
    if (list == nullptr || !keeps_all_values(option)) {
      if (!fits(option, node)) return wrong(key, "expected " + expected_of(option));
      return {};
    }
    for (const toml::node& each : *list) {
      if (!fits(option, each)) return wrong(key, "expected " + expected_of(option));
    }
    return {};
  }

  Result<void> store(const toml::key& key, const Option& option, const toml::node& node) const {
    HEADRACE_TRY(check(key, option, node));
    if (auto* const* flag = std::get_if<bool*>(&option.target)) {
      **flag = node.value_or(false);
      return {};
    }
    const auto* list = node.as_array();
    if (list == nullptr) return store_text(key, option, typed_text(option, node));
    for (const toml::node& each : *list) {
      HEADRACE_TRY(store_text(key, option, typed_text(option, each)));
    }
    return {};
  }

  Result<void> store_text(const toml::key& key, const Option& option,
                          const std::string& text) const {
    auto stored = store_value(option, text);
    if (stored.ok()) return {};
    Error error = std::move(stored).error();
    return wrong(key, std::move(error.message), std::move(error.hint));
  }

  const Command& command_;
  const std::string name_;
  const std::function<bool(const Option&)>& is_given_;
  std::map<std::string, std::string> taken_;  ///< by Option::names: the key
};

template <class Value>
std::string toml_text(const Value& value) {
  std::ostringstream out;
  // Characters beyond ASCII stay as they are; text is in double quotes on one line.
  out << toml::toml_formatter(toml::value<Value>(value), toml::format_flags::none);
  return out.str();
}

/// The value that an option has, or "" for none.
struct ValueText {
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const int64_t* value) const { return toml_text(*value); }
  std::string operator()(const double* value) const { return toml_text(*value); }
  std::string operator()(const std::string* value) const {
    return value->empty() ? "" : toml_text(*value);
  }
  std::string operator()(const std::optional<int64_t>* value) const {
    return *value ? toml_text(**value) : "";
  }
  std::string operator()(const std::optional<uint64_t>* value) const {
    if (!*value) return "";
    const bool fits = **value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return fits ? std::to_string(**value) : '"' + std::to_string(**value) + '"';
  }
  std::string operator()(const std::optional<double>* value) const {
    return *value ? toml_text(**value) : "";
  }
  std::string operator()(const std::optional<std::string>* value) const {
    return *value ? toml_text(**value) : "";
  }
  template <class Item>
  std::string operator()(const std::vector<Item>* values) const {
    std::string out;
    for (const Item& each : *values) out += (out.empty() ? "[" : ", ") + toml_text(each);
    return out.empty() ? "" : out + "]";
  }
};

size_t num_values(const Option& option) {
  const auto* const* list = std::get_if<std::vector<std::string>*>(&option.target);
  if (list != nullptr) return (*list)->size();
  return std::visit(ValueText{}, option.target).empty() ? 0 : 1;
}

std::string setting_line(const Option& option) {
  const std::string key = key_of(option);
  if (option.is_secret) return fmt::format("# {}: {} given, not shown\n", key, num_values(option));
  std::string value = std::visit(ValueText{}, option.target);
  if (option.takes_auto && value == "0") value = "\"auto\"";
  if (!value.empty()) return fmt::format("{} = {}\n", key, value);
  return fmt::format("# {}: {}\n", key,
                     option.default_text.empty() ? "not given" : option.default_text);
}

}  // namespace

Result<void> apply_config(const Command& command, std::string_view text, const std::string& name,
                          const std::function<bool(const Option&)>& is_given) {
  return Reader(command, name, is_given).run(text);
}

Result<void> apply_config_file(const Command& command, const std::string& path,
                               const std::function<bool(const Option&)>& is_given) {
  HEADRACE_ASSIGN(const std::string text, read_small_file(path, kMaxConfigBytes));
  return apply_config(command, text, path, is_given);
}

std::string config_text(const std::vector<Option>& options) {
  // In the order of the groups' first options, as in the help.
  std::vector<std::pair<std::string, std::string>> groups;
  for (const Option& option : options) {
    if (!belongs_in_file(option)) continue;
    const std::string title = option.group.empty() ? "Options" : option.group;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& each) { return each.first == title; });
    if (group == groups.end()) group = groups.insert(groups.end(), {title, ""});
    group->second += setting_line(option);
  }
  std::string out;
  for (const auto& [title, lines] : groups) {
    out += fmt::format("{}# {}\n{}", out.empty() ? "" : "\n", title, lines);
  }
  return out;
}

}  // namespace headrace::cli
