// What is said of an option's text.
#pragma once

#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

/// invalid_argument: what was expected, and as much of what came as fits a line.
inline Error expected_error(std::string_view text, std::string_view expected) {
  return Error{
      ErrorCode::invalid_argument,
      "expected " + std::string(expected) + ", got '" + std::string(text.substr(0, 60)) + "'", "",
      ""};
}

}  // namespace headrace
