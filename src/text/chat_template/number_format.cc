#include "text/chat_template/number_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/chat_template/fault.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/printing.h"

namespace headrace::jinja {

namespace {

std::string sign_of(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

void group_digits(std::string& digits, char separator, size_t every) {
  if (separator == 0) return;
  const size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  for (size_t at = whole; at > every; at -= every) digits.insert(at - every, 1, separator);
}

void to_upper(std::string& text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
}

std::string digits_of(double value, std::chars_format format, int precision) {
  // A double has at most 309 digits before the point.
  std::string buffer(static_cast<size_t>(precision) + 400, '\0');
  const auto done =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
  buffer.resize(static_cast<size_t>(done.ptr - buffer.data()));
  return buffer;
}

/// Whether the number that `text` writes is 1 or more, by where its first digit other than 0
/// stands.
bool at_least_one(std::string_view text) {
  const size_t end = std::min(text.find_first_of("eE"), text.size());
  const auto digits = text.substr(0, end);
  const auto point = static_cast<int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<int64_t>(digits.find_first_of("123456789"));
  int64_t exponent = 0;
  if (end < text.size()) {
    auto power = text.substr(end + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto done = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (done.ec == std::errc::result_out_of_range) return !power.starts_with('-');
  }
  // The first digit counts 10^(point - first - 1) before the point, 10^(point - first) after it.
  return exponent >= (first < point ? first - point + 1 : first - point);
}

}  // namespace

std::optional<double> read_real(std::string_view text) {
  double value = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), value);
  if (done.ec == std::errc::invalid_argument || done.ptr != text.data() + text.size()) return {};
  if (done.ec == std::errc::result_out_of_range) return at_least_one(text) ? HUGE_VAL : 0.0;
  return value;
}

NumberText format_integer(int64_t value, const FormatSpec& spec) {
  const char low = static_cast<char>(spec.type | 32);
  const int base = low == 'x' ? 16 : (low == 'o' ? 8 : (low == 'b' ? 2 : 10));
  const auto magnitude =
      value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  char buffer[72];
  const auto done = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base);
  NumberText out;
  out.digits.assign(buffer, done.ptr);
  out.sign = sign_of(value < 0, spec);
  if (spec.alternate && base != 10) out.sign += std::string("0") + low;
  if (spec.type == 'X') {
    to_upper(out.digits);
    to_upper(out.sign);
  }
  group_digits(out.digits, spec.grouping, base == 10 ? 3 : 4);
  return out;
}

NumberText format_real(double value, const FormatSpec& spec) {
  constexpr int64_t kMaxPrecision = 10000;
  if (spec.precision > kMaxPrecision) fail_limit("a format's precision is over 10000");
  const bool negative = std::signbit(value) && !std::isnan(value);
  double magnitude = negative ? -value : value;
  const char low = static_cast<char>(spec.type | 32);
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  NumberText out;
  out.sign = sign_of(negative, spec);
  if (spec.type == '%') magnitude *= 100;
  if (!std::isfinite(magnitude)) {
    out.digits = std::isnan(magnitude) ? "nan" : "inf";
  } else if (low == 'f' || spec.type == '%') {
    out.digits = digits_of(magnitude, std::chars_format::fixed, precision);
    if (spec.alternate && precision == 0) out.digits += ".";
  } else if (low == 'e') {
    out.digits = digits_of(magnitude, std::chars_format::scientific, precision);
  } else if (spec.type == 0 && spec.precision < 0) {
    out.digits = repr_of_double(magnitude);
  } else {
    out.digits = digits_of(magnitude, std::chars_format::general, std::max(precision, 1));
    if (spec.type == 0 && out.digits.find_first_of(".e") == std::string::npos) out.digits += ".0";
  }
  if (spec.type == '%') out.digits += "%";
  if (spec.type >= 'E' && spec.type <= 'G') to_upper(out.digits);
  group_digits(out.digits, spec.grouping, 3);
  return out;
}

}  // namespace headrace::jinja
