#include "text/chat_template/value.h"

#include <cmath>
#include <functional>

#include "text/chat_template/unicode.h"

namespace headrace::jinja {

void Shape::add(const Value& part) {
  constexpr int64_t kMost = int64_t{1} << 50;
  const Shape other = part.shape();
  depth = std::max(depth, other.depth + 1);
  weight = std::min(kMost, weight + other.weight);
}

String::String(Text content, Budget* budget)
    : Object({1, 1 + static_cast<int64_t>(content.size() / 64)}),
      text(std::move(content)),
      num_chars(count_code_points(text.view())),
      hold(budget, sizeof(String) + text.size()) {}

int64_t Entries::position(const Value& key, size_t hashed) const {
  if (entries_.size() <= kLinear) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equals(entries_[i].first, key)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  const auto [begin, end] = index_.equal_range(hashed);
  for (auto it = begin; it != end; ++it) {
    if (equals(entries_[it->second].first, key)) return it->second;
  }
  return -1;
}

const Value* Entries::find(const Value& key) const {
  const auto at = position(key, hash(key));
  return at < 0 ? nullptr : &entries_[static_cast<size_t>(at)].second;
}

const Value* Entries::find(std::string_view key) const {
  if (entries_.size() <= kLinear) {
    for (const auto& [k, v] : entries_) {
      if (k.is_string() && k.view() == key) return &v;
    }
    return nullptr;
  }
  const auto [begin, end] = index_.equal_range(std::hash<std::string_view>{}(key));
  for (auto it = begin; it != end; ++it) {
    const auto& [k, v] = entries_[it->second];
    if (k.is_string() && k.view() == key) return &v;
  }
  return nullptr;
}

void Entries::set(Value key, Value value) {
  const size_t hashed = hash(key);
  const auto at = position(key, hashed);
  if (at >= 0) {
    entries_[static_cast<size_t>(at)].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() <= kLinear) return;
  if (index_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      index_.emplace(hash(entries_[i].first), static_cast<uint32_t>(i));
    }
  } else {
    index_.emplace(hashed, static_cast<uint32_t>(entries_.size() - 1));
  }
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.as_int() != 0;
    case Kind::real:
      return value.as_real() != 0.0;
    case Kind::string:
      return !value.text().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.as<Sequence>().items.empty();
    case Kind::dict:
      return value.as<Dict>().entries.size() != 0;
    case Kind::view:
      return value.as<View>().dict.as<Dict>().entries.size() != 0;
    case Kind::range:
      return value.as<Range>().length != 0;
    case Kind::iterator:
    case Kind::space:
    case Kind::loop:
    case Kind::function:
      return true;
  }
  return false;
}

namespace {

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_int() && b.is_int()) return a.as_int() == b.as_int();
  if (!a.is_int() && !b.is_int()) return a.as_real() == b.as_real();
  const Value& whole = a.is_int() ? a : b;
  const double real = a.is_int() ? b.as_real() : a.as_real();
  // Exact: a long double holds every int64 and every double.
  return static_cast<long double>(whole.as_int()) == static_cast<long double>(real);
}

bool equal_sequences(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equals(a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(const Entries& a, const Entries& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.all()) {
    const Value* other = b.find(key);
    if (other == nullptr || !equals(value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  if (a.length != b.length) return false;
  if (a.length == 0) return true;
  return a.start == b.start && (a.length == 1 || a.step == b.step);
}

}  // namespace

bool equals(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      return a.view() == b.view();
    case Kind::list:
    case Kind::tuple:
      return a.object() == b.object() ||
             equal_sequences(a.as<Sequence>().items, b.as<Sequence>().items);
    case Kind::dict:
      return a.object() == b.object() || equal_dicts(a.as<Dict>().entries, b.as<Dict>().entries);
    case Kind::range:
      return equal_ranges(a.as<Range>(), b.as<Range>());
    default:
      return a.object() == b.object();
  }
}

size_t hash(const Value& value) {
  switch (value.kind()) {
    case Kind::none:
      return 0x6e6f6e65;
    case Kind::boolean:
    case Kind::integer:
      return std::hash<int64_t>{}(value.as_int());
    case Kind::real: {
      const double d = value.as_real();
      if (std::trunc(d) == d && std::abs(d) < 9.2e18) {
        return std::hash<int64_t>{}(static_cast<int64_t>(d));
      }
      return std::hash<double>{}(d);
    }
    case Kind::string:
      return std::hash<std::string_view>{}(value.view());
    case Kind::tuple: {
      size_t sum = 0x7475706c;
      for (const auto& item : value.as<Sequence>().items) {
        sum = sum * 1000003 ^ hash(item);
      }
      return sum;
    }
    case Kind::list:
    case Kind::dict:
    case Kind::view:
      fail("unhashable type: '" + std::string(type_name(value)) + "'");
    case Kind::range: {
      const auto& range = value.as<Range>();
      return std::hash<int64_t>{}(range.length * 31 + (range.length > 0 ? range.start : 0));
    }
    case Kind::undefined:
      return 0x756e6465;
    default:
      return std::hash<const void*>{}(value.object().get());
  }
}

namespace {

// -1, 0, 1, or 2 where a NaN makes every comparison false.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_int() && b.is_int()) {
    return a.as_int() < b.as_int() ? -1 : (a.as_int() > b.as_int() ? 1 : 0);
  }
  const auto x = a.is_int() ? static_cast<long double>(a.as_int()) : a.as_real();
  const auto y = b.is_int() ? static_cast<long double>(b.as_int()) : b.as_real();
  if (x < y) return -1;
  if (x > y) return 1;
  return x == y ? 0 : 2;
}

bool holds(int order, std::string_view op) {
  if (order == 2) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

}  // namespace

bool ordered(const Value& a, const Value& b, std::string_view op) {
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return holds(compare_numbers(a, b), op);
  if (a.is_string() && b.is_string()) {
    // The order of UTF-8 bytes is the order of code points.
    const int order = a.view().compare(b.view());
    return holds(order < 0 ? -1 : (order > 0 ? 1 : 0), op);
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    const auto& x = a.as<Sequence>().items;
    const auto& y = b.as<Sequence>().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equals(x[i], y[i])) return ordered(x[i], y[i], op);
    }
    return holds(x.size() < y.size() ? -1 : (x.size() > y.size() ? 1 : 0), op);
  }
  fail("'" + std::string(op) + "' not supported between instances of '" +
       std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return value.text().markup() ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::dict:
      return "dict";
    case Kind::view:
      switch (value.as<View>().what) {
        case View::What::keys:
          return "dict_keys";
        case View::What::values:
          return "dict_values";
        case View::What::items:
          return "dict_items";
      }
      return "dict_items";
    case Kind::range:
      return "range";
    case Kind::iterator:
      return "generator";
    case Kind::space:
      return "Namespace";
    case Kind::loop:
      return "LoopContext";
    case Kind::function:
      return "function";
  }
  return "object";
}

void fail_undefined(const Value& value) {
  fail(value.as<Undefined>().message);
}

}  // namespace headrace::jinja
