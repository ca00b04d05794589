// How Python spells values, for all that print them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::jinja {

/// A float's repr ("1.0", "1e+16", "inf").
std::string repr_of_double(double value);

/// A string's repr, quotes included.
std::string repr_of_string(std::string_view text);

/// How many code points repr_of_string() has for text that is given piece by piece, each of whole
/// code points.
class ReprWidth {
 public:
  void add(std::string_view piece);
  int64_t total() const { return width_ + (has_double_ ? singles_ : 0); }

 private:
  int64_t width_ = 2;
  int64_t singles_ = 0;  // escaped only where there are double quotes too
  bool has_double_ = false;
};

}  // namespace headrace::jinja
