#include "text/chat_template/builtins.h"

#include <algorithm>
#include <unordered_map>

#include "text/chat_template/interpreter.h"

namespace headrace::jinja {

Bound::Bound(std::string_view function, const Args& args,
             std::initializer_list<std::string_view> names, size_t num_required)
    : function_(function), slots_(names.size(), nullptr) {
  if (args.positional.size() > names.size()) {
    fail(std::string(function) + "() takes at most " + std::to_string(names.size()) +
         " argument(s), found " + std::to_string(args.positional.size()));
  }
  for (size_t i = 0; i < args.positional.size(); ++i) slots_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto* found = std::find(names.begin(), names.end(), name.view());
    if (found == names.end()) {
      fail(std::string(function) + "() has no argument named '" + name.bytes() + "'");
    }
    auto& slot = slots_[static_cast<size_t>(found - names.begin())];
    if (slot != nullptr) {
      fail(std::string(function) + "() got multiple values for argument '" + name.bytes() + "'");
    }
    slot = &value;
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (slots_[i] == nullptr) {
      fail(std::string(function) + "() misses the argument '" + std::string(names.begin()[i]) +
           "'");
    }
  }
}

bool Bound::truth(size_t i, bool otherwise) const {
  return has(i) ? truthy(*slots_[i]) : otherwise;
}

int64_t Bound::integer(size_t i, int64_t otherwise) const {
  return has(i) ? need_int(*slots_[i], function_) : otherwise;
}

int64_t need_int(const Value& value, std::string_view what) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_int()) {
    fail(std::string(what) + ": expected an integer, found '" + std::string(type_name(value)) +
         "'");
  }
  return value.as_int();
}

const Text& need_string(const Value& value, std::string_view what) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_string()) {
    fail(std::string(what) + ": expected a string, found '" + std::string(type_name(value)) + "'");
  }
  return value.text();
}

namespace {

using Table = std::unordered_map<std::string_view, Builtin>;

Table make_table(std::initializer_list<const std::vector<NamedBuiltin>*> lists) {
  Table table;
  for (const auto* list : lists) {
    for (const auto& [name, function] : *list) table.emplace(name, function);
  }
  return table;
}

Builtin find_in(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

Builtin find_filter(std::string_view name) {
  static const Table kTable = make_table({&string_filters(), &layout_filters(), &sequence_filters(),
                                          &selection_filters(), &number_filters()});
  return find_in(kTable, name);
}

Builtin find_method(const Value& self, std::string_view name) {
  static const Table kString = make_table({&string_methods(), &string_query_methods()});
  static const Table kDict = make_table({&container_methods(Kind::dict)});
  static const Table kList = make_table({&container_methods(Kind::list)});
  static const Table kTuple = make_table({&container_methods(Kind::tuple)});
  static const Table kReal = make_table({&container_methods(Kind::real)});
  switch (self.kind()) {
    case Kind::string:
      return find_in(kString, name);
    case Kind::dict:
      return find_in(kDict, name);
    case Kind::list:
      return find_in(kList, name);
    case Kind::tuple:
    case Kind::range:
      return find_in(kTuple, name);
    case Kind::real:
      return find_in(kReal, name);
    default:
      return nullptr;
  }
}

bool is_hidden_method(const Value& self, std::string_view name) {
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
  const auto has = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (self.is(Kind::dict) && has(kDict)) || (self.is(Kind::list) && has(kList));
}

}  // namespace headrace::jinja
