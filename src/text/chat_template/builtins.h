// The names a template can use: filters, tests, methods and global functions, and how they take
// their arguments.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat_template/value.h"

namespace headrace::jinja {

class Interpreter;

/// The arguments of a call.
struct Args {
  std::vector<Value> positional;
  /// A name from a ** mapping is as trusted as the key it was.
  std::vector<std::pair<Text, Value>> named;
};

/// Arguments matched to the parameters of a builtin, as Python would.
class Bound {
 public:
  /// Fails on missing, unknown, doubled or too many arguments, naming the function.
  Bound(std::string_view function, const Args& args, std::initializer_list<std::string_view> names,
        size_t num_required = 0);

  bool has(size_t i) const { return slots_[i] != nullptr; }
  /// The argument, None where absent.
  const Value& operator[](size_t i) const { return slots_[i] == nullptr ? none_ : *slots_[i]; }
  bool truth(size_t i, bool otherwise) const;
  /// Fails unless it is an integer.
  int64_t integer(size_t i, int64_t otherwise) const;

 private:
  std::string_view function_;
  std::vector<const Value*> slots_;
  Value none_;
};

/// `value` as an integer; fails on other types, saying `what` wants one.
int64_t need_int(const Value& value, std::string_view what);
/// `value`, which must be a string.
const Text& need_string(const Value& value, std::string_view what);

using Builtin = Value (*)(Interpreter&, const Value& self, Args& args);
using Test = bool (*)(Interpreter&, const Value& self, Args& args);

struct NamedBuiltin {
  std::string_view name;
  Builtin function;
};
struct NamedTest {
  std::string_view name;
  Test function;
};

/// nullptr where there is none of that name.
Builtin find_filter(std::string_view name);
Test find_test(std::string_view name);
/// The method `name` of values of self's type.
Builtin find_method(const Value& self, std::string_view name);
/// Whether Python has such a method, but the sandbox hides it because it changes the value.
bool is_hidden_method(const Value& self, std::string_view name);

/// The global functions: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
void add_globals(Entries& context);

// The tables behind find_filter and find_method, one a file.
const std::vector<NamedBuiltin>& string_filters();
const std::vector<NamedBuiltin>& layout_filters();
const std::vector<NamedBuiltin>& sequence_filters();
const std::vector<NamedBuiltin>& selection_filters();
const std::vector<NamedBuiltin>& number_filters();
const std::vector<NamedBuiltin>& string_methods();
const std::vector<NamedBuiltin>& string_query_methods();
const std::vector<NamedBuiltin>& container_methods(Kind kind);

/// Something that can be called.
struct Function : Object {
  explicit Function(std::string function_name, Shape object_shape = {})
      : Object(object_shape), name(std::move(function_name)) {}
  const std::string name;

  virtual Value call(Interpreter& interpreter, Args& args) const = 0;
  /// An attribute, or false.
  virtual bool attribute(Interpreter&, std::string_view, Value&) const { return false; }
};

/// A builtin with the value it is a method of.
struct NativeFunction : Function {
  NativeFunction(std::string function_name, Builtin code, Value of)
      : Function(std::move(function_name), of.shape()), body(code), self(std::move(of)) {}
  const Builtin body;
  const Value self;

  Value call(Interpreter& interpreter, Args& args) const override {
    return body(interpreter, self, args);
  }
};

}  // namespace headrace::jinja
