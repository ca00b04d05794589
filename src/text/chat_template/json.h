// JSON into values, and values into JSON as Python's json.dumps writes it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "text/chat_template/value.h"

namespace headrace::jinja {

class Interpreter;

/// `json` as untrusted values; key order is kept, numbers beyond int64 become floats. Faults:
/// nesting past the budget's depth.
Value from_json(Budget& budget, const nlohmann::ordered_json& json);

struct DumpOptions {
  bool ensure_ascii = false;
  bool has_indent = false;
  std::string_view indent;          ///< of one level
  std::string_view item_separator;  ///< between items
  std::string_view key_separator;   ///< between key and value
  bool sort_keys = false;
  bool trusted = true;  ///< whether the template wrote the strings above
};

/// Trusted only if every part of `value` and the options' strings are. Faults: types that JSON does
/// not know.
Text to_json(Interpreter& in, const Value& value, const DumpOptions& options);

}  // namespace headrace::jinja
