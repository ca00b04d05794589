// The values of a template: Python's, immutable but for namespaces and iterators. Owns their
// representation, equality, order and hashing. Must not know syntax.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/chat_template/text.h"

namespace headrace::jinja {

enum class Kind : uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  view,  ///< dict.keys(), .values(), .items()
  range,
  iterator,  ///< what Python's generators are: runs once, has no length
  space,     ///< namespace(...)
  loop,
  function
};

class Value;

/// How large a value is. `depth` is how deeply containers nest inside it: making one deeper than
/// the budget's max_depth is refused, which bounds every recursion over values, destruction
/// included. `weight` is what walking it costs in steps (shared parts count each time, as a walk
/// meets them).
struct Shape {
  int32_t depth = 1;
  int64_t weight = 1;

  void add(const Value& part);
};

/// What a Value points to.
struct Object {
  explicit Object(Shape object_shape = {}) : shape(object_shape) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  const Shape shape;
};

class Value {
 public:
  Value() = default;  ///< None
  static Value boolean(bool b) { return Value(Kind::boolean, b ? 1 : 0); }
  static Value integer(int64_t i) { return Value(Kind::integer, i); }
  static Value real(double d) {
    Value v;
    v.kind_ = Kind::real;
    v.real_ = d;
    return v;
  }
  Value(Kind kind, std::shared_ptr<const Object> object)
      : kind_(kind), object_(std::move(object)) {}

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_string() const { return kind_ == Kind::string; }
  /// An integer or a boolean, which Python counts as one.
  bool is_int() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_int() || kind_ == Kind::real; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }

  int64_t as_int() const { return int_; }
  double as_real() const { return kind_ == Kind::real ? real_ : static_cast<double>(int_); }
  template <class T>
  const T& as() const {
    return static_cast<const T&>(*object_);
  }
  const std::shared_ptr<const Object>& object() const { return object_; }
  Shape shape() const { return object_ == nullptr ? Shape{0, 1} : object_->shape; }

  /// Came from the conversation (not for strings, which know it per byte).
  bool tainted() const { return tainted_; }
  Value with_taint(bool tainted) && {
    tainted_ = tainted_ || tainted;
    return std::move(*this);
  }

  const Text& text() const;
  std::string_view view() const { return text().view(); }

 private:
  Value(Kind kind, int64_t i) : kind_(kind), int_(i) {}

  Kind kind_ = Kind::none;
  bool tainted_ = false;
  union {
    int64_t int_ = 0;
    double real_;
  };
  std::shared_ptr<const Object> object_;
};

struct Undefined : Object {
  Undefined(std::string what, bool is_unsafe) : message(std::move(what)), unsafe(is_unsafe) {}
  std::string message;  ///< why it is undefined; using it fails with these words
  bool unsafe;          ///< hidden by the sandbox
};

struct String : Object {
  String(Text content, Budget* budget);
  const Text text;
  const size_t num_chars;
  Hold hold;
  bool ascii() const { return num_chars == text.size(); }
};

inline const Text& Value::text() const {
  return as<String>().text;
}

/// A list or a tuple.
struct Sequence : Object {
  Sequence(std::vector<Value> values, Shape object_shape, Budget* budget)
      : Object(object_shape),
        items(std::move(values)),
        hold(budget, items.capacity() * sizeof(Value)) {}
  const std::vector<Value> items;
  bool is_group = false;  ///< a tuple of the groupby filter: has .grouper and .list
  Hold hold;
};

/// Keys and values in the order of insertion; a repeated key keeps its place and takes the value.
class Entries {
 public:
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  /// Fails on keys that Python cannot hash.
  void set(Value key, Value value);
  const std::vector<std::pair<Value, Value>>& all() const { return entries_; }
  size_t size() const { return entries_.size(); }
  void clear() {
    entries_.clear();
    index_.clear();
  }

 private:
  static constexpr size_t kLinear = 8;
  int64_t position(const Value& key, size_t hash) const;
  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_multimap<size_t, uint32_t> index_;  // empty up to kLinear entries
};

struct Dict : Object {
  Dict(Entries content, Shape object_shape, Budget* budget)
      : Object(object_shape),
        entries(std::move(content)),
        hold(budget, entries.size() * (2 * sizeof(Value) + 32)) {}
  const Entries entries;
  Hold hold;
};

struct View : Object {
  enum class What : uint8_t { keys, values, items };
  View(What part, Value of) : Object(of.shape()), what(part), dict(std::move(of)) {}
  const What what;
  const Value dict;
};

struct Range : Object {
  Range(int64_t first, int64_t end, int64_t by, int64_t count)
      : start(first), stop(end), step(by), length(count) {}
  /// Number `i` of it. The product may wrap where the sum does not.
  int64_t at(int64_t i) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
  }
  const int64_t start, stop, step, length;
};

struct Iterator : Object {
  Iterator(std::vector<Value> values, Shape object_shape, Budget* budget)
      : Object(object_shape),
        items(std::move(values)),
        hold(budget, items.capacity() * sizeof(Value)) {}
  const std::vector<Value> items;
  mutable size_t next = 0;
  Hold hold;
};

struct Space : Object {
  mutable Entries attributes;
};

/// Python's bool(value).
bool truthy(const Value& value);
/// Python's ==.
bool equals(const Value& a, const Value& b);
/// Fails, naming the type, on values that Python cannot hash.
size_t hash(const Value& value);
/// "<", "<=", ">" or ">="; fails on types that have no order.
bool ordered(const Value& a, const Value& b, std::string_view op);
/// Python's name of the type ("str", "NoneType").
std::string_view type_name(const Value& value);
/// Fails with the words of an undefined value.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace headrace::jinja
