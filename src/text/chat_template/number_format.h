// Numbers to text as Python's format specifications say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::jinja {

/// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct FormatSpec {
  std::string fill = " ";  ///< one code point
  char align = 0;          ///< '<', '>', '^', '=' or 0: the type's own
  char sign = '-';         ///< '-', '+' or ' '
  bool alternate = false;
  char grouping = 0;  ///< ',' or '_'
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

/// A formatted number before padding: `sign` holds the sign and a base's prefix.
struct NumberText {
  std::string sign, digits;
};

/// Decimal digits without a sign, with or without a fraction and an exponent, or "inf" or "nan", as
/// the nearest double: infinity where they say more than one holds. Nothing for any other text.
std::optional<double> read_real(std::string_view text);

/// type d, b, o, x or X.
NumberText format_integer(int64_t value, const FormatSpec& spec);
/// type e, f, g (either case), % or 0 (shortest form, Python's repr with at least one decimal).
/// Precision is at most 10 000, else a Fault.
NumberText format_real(double value, const FormatSpec& spec);

}  // namespace headrace::jinja
