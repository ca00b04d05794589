// The `attribute` argument of filters: "a.b.0" looks up a, then b, then item 0.
#pragma once

#include <vector>

#include "text/chat_template/interpreter.h"

namespace headrace::jinja {

class ItemPath {
 public:
  /// None gives the item itself. A number or a string with dots.
  ItemPath(Interpreter& in, const Value& attribute);
  /// What the path leads to; `fallback`, where given, replaces what is undefined on the way.
  Value get(Interpreter& in, Value item, const Value* fallback = nullptr) const;

 private:
  std::vector<Value> parts_;
};

/// "a,b.c": several paths; None: one that gives the item itself.
std::vector<ItemPath> item_paths(Interpreter& in, const Value& attribute);

/// Strings in lower case, everything else as it is.
Value ignore_case(Interpreter& in, const Value& value);

}  // namespace headrace::jinja
