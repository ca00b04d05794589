// Numbers that people and files write, in one place. Must not know what they are for.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace headrace {

/// Sets `value` where `text` as a whole is such a number, in decimal, without a plus sign or
/// spaces. Else `value` stays as it is: result_out_of_range where it does not fit, invalid_argument
/// where it is none.
template <class Number>
std::errc read_number(std::string_view text, Number& value) {
  Number read{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, read);
  if (stop != end) return std::errc::invalid_argument;
  if (error == std::errc()) value = read;
  return error;
}

/// The same, or nothing; also nothing below `least` or above `most`.
template <class Number>
std::optional<Number> number_within(std::string_view text, Number least, Number most) {
  Number value{};
  if (read_number(text, value) != std::errc() || value < least || value > most) return std::nullopt;
  return value;
}

}  // namespace headrace
