// How deep a JSON text nests, found without parsing it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace headrace {

/// Deepest nesting of brackets outside strings. Counted before parsing, since a parsed tree is
/// built and destroyed recursively.
inline int json_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace headrace
