// See values.h.
#include "cli/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "base/nearest_word.h"
#include "base/read_number.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

/// Of one option; a range has many quickly.
constexpr size_t kMaxListValues = 1000;

Error bad_value(const std::string& expected, const std::string& text) {
  return Error{ErrorCode::invalid_argument,
               "expected " + expected + ", got '" + printable(text, 60) + "'", "", ""};
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string range_text(const Option& option) {
  if (option.min_value && option.max_value) {
    return fmt::format(" from {} to {}", *option.min_value, *option.max_value);
  }
  if (option.min_value) return fmt::format(" of at least {}", *option.min_value);
  if (option.max_value) return fmt::format(" of at most {}", *option.max_value);
  return "";
}

bool in_range(const Option& option, double value) {
  return !(option.min_value && value < *option.min_value) &&
         !(option.max_value && value > *option.max_value);
}

template <class Number>
Result<Number> parse_number(const Option& option, const std::string& text) {
  const std::string kind = std::is_floating_point_v<Number> ? "a number" : "a whole number";
  const std::string expected = kind + range_text(option);
  std::string_view digits = text;
  // People write a plus sign.
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  Number value{};
  const std::errc error = read_number(digits, value);
  if (error == std::errc::result_out_of_range) {
    return bad_value(expected + " that fits in 64 bits", text);
  }
  if (error != std::errc()) return bad_value(expected, text);
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return bad_value("a finite number" + range_text(option), text);
  }
  if (!in_range(option, static_cast<double>(value))) return bad_value(expected, text);
  return value;
}

Result<void> check_choice(const Option& option, const std::string& text) {
  if (option.choices.empty()) return {};
  if (option.is_list && text.find(',') != std::string::npos) {
    for (const std::string& part : split_list(text)) HEADRACE_TRY(check_choice(option, part));
    return {};
  }
  for (const auto& choice : option.choices) {
    if (choice == text) return {};
  }
  Error error = bad_value(join(option.choices), text);
  const std::string meant = nearest_word(text, option.choices);
  if (!meant.empty()) error.hint = "did you mean '" + meant + "'?";
  return error;
}

/// "128", "128-1024", "128-1024+128" or "128-1024*2", added to `out`.
Result<void> add_numbers(const Option& option, const std::string& text, std::vector<int64_t>& out) {
  const size_t dash = text.find('-', 1);
  if (dash == std::string::npos) {
    HEADRACE_ASSIGN(const int64_t value, parse_number<int64_t>(option, text));
    out.push_back(value);
    return {};
  }
  const size_t step_at = std::min(text.find_first_of("+*", dash), text.size());
  HEADRACE_ASSIGN(const int64_t first, parse_number<int64_t>(option, text.substr(0, dash)));
  HEADRACE_ASSIGN(const int64_t last,
                  parse_number<int64_t>(option, text.substr(dash + 1, step_at - dash - 1)));
  const bool multiplies = step_at < text.size() && text[step_at] == '*';
  int64_t step = 1;
  if (step_at < text.size()) {
    Option any;
    any.min_value = multiplies ? 2 : 1;
    HEADRACE_ASSIGN(step, parse_number<int64_t>(any, text.substr(step_at + 1)));
  }
  if (first > last || (multiplies && first <= 0)) {
    return bad_value("a range from less to more, as in 128-1024*2", text);
  }
  for (int64_t value = first; value <= last;) {
    if (out.size() == kMaxListValues) break;
    out.push_back(value);
    const uint64_t left = static_cast<uint64_t>(last) - static_cast<uint64_t>(value);
    if (multiplies ? value > last / step : left < static_cast<uint64_t>(step)) break;
    value = multiplies ? value * step : value + step;
  }
  return {};
}

template <class Number, class Target>
Result<void> store_number(const Option& option, const std::string& text, Target* target) {
  HEADRACE_ASSIGN(*target, parse_number<Number>(option, text));
  return {};
}

struct Store {
  const Option& option;
  const std::string& text;

  Result<void> operator()(bool* target) const {
    *target = text != "false";
    return {};
  }
  Result<void> operator()(int64_t* target) const {
    return store_number<int64_t>(option, text, target);
  }
  Result<void> operator()(std::optional<int64_t>* target) const {
    return store_number<int64_t>(option, text, target);
  }
  Result<void> operator()(std::optional<uint64_t>* target) const {
    return store_number<uint64_t>(option, text, target);
  }
  Result<void> operator()(double* target) const {
    return store_number<double>(option, text, target);
  }
  Result<void> operator()(std::optional<double>* target) const {
    return store_number<double>(option, text, target);
  }
  Result<void> operator()(std::string* target) const {
    *target = text;
    return {};
  }
  Result<void> operator()(std::optional<std::string>* target) const {
    *target = text;
    return {};
  }
  Result<void> operator()(std::vector<std::string>* target) const {
    target->push_back(text);
    return {};
  }
  Result<void> operator()(std::vector<int64_t>* target) const {
    for (const std::string& part : split_list(text)) {
      HEADRACE_TRY(add_numbers(option, part, *target));
    }
    if (target->size() >= kMaxListValues) {
      return bad_value(fmt::format("fewer than {} numbers", kMaxListValues), text);
    }
    return {};
  }
};

}  // namespace

Result<void> store_value(const Option& option, const std::string& text) {
  if (text.empty() && option.is_model) return bad_value("a file or a model's name", text);
  if (text.empty() && option.is_path) return bad_value("a file's name", text);
  HEADRACE_TRY(check_choice(option, text));
  return std::visit(Store{option, text}, option.target);
}

}  // namespace headrace::cli
