// Looking inside values: attributes, items, slices, iteration.
#include <algorithm>

#include "base/checked.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

std::string described(const Value& object) {
  switch (object.kind()) {
    case Kind::none:
      return "None";
    case Kind::space:
      return "'namespace object'";
    case Kind::loop:
      return "'loop object'";
    default:
      return "'" + std::string(type_name(object)) + " object'";
  }
}

}  // namespace

bool Interpreter::own_attribute(const Value& object, std::string_view name, Value& out) {
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4) {
    out = make_undefined(
        "access to attribute '" + std::string(name) + "' of " + described(object) + " is unsafe",
        true);
    return true;
  }
  switch (object.kind()) {
    case Kind::space:
      if (const Value* value = object.as<Space>().attributes.find(name)) {
        out = *value;
        return true;
      }
      return false;
    case Kind::loop:
      return loop_attribute(object, name, out);
    case Kind::function:
      return object.as<Function>().attribute(*this, name, out);
    case Kind::tuple:
      if (object.as<Sequence>().is_group && (name == "grouper" || name == "list")) {
        out = object.as<Sequence>().items[name == "list" ? 1 : 0];
        return true;
      }
      break;
    case Kind::range: {
      const auto& range = object.as<Range>();
      if (name != "start" && name != "stop" && name != "step") break;
      out =
          Value::integer(name == "start" ? range.start : (name == "stop" ? range.stop : range.step))
              .with_taint(object.tainted());
      return true;
    }
    default:
      break;
  }
  if (const Builtin method = find_method(object, name)) {
    out =
        Value(Kind::function, std::make_shared<NativeFunction>(std::string(name), method, object));
    return true;
  }
  if (!is_hidden_method(object, name)) return false;
  out = make_undefined(
      "access to attribute '" + std::string(name) + "' of " + described(object) + " is unsafe",
      true);
  return true;
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(object);
  Value out;
  if (own_attribute(object, name, out)) return out;
  if (object.is(Kind::dict)) {
    if (const Value* value = object.as<Dict>().entries.find(name)) return *value;
  }
  return make_undefined(described(object) + " has no attribute '" + std::string(name) + "'");
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is(Kind::dict)) {
    budget_.step(key.shape().weight);
    const bool hashable = !key.is(Kind::list) && !key.is(Kind::dict) && !key.is(Kind::view);
    if (hashable) {
      if (const Value* value = object.as<Dict>().entries.find(key)) return *value;
    }
  } else if (key.is_int()) {
    const int64_t size = object.is_string() ? static_cast<int64_t>(object.as<String>().num_chars)
                         : object.is_sequence()
                             ? static_cast<int64_t>(object.as<Sequence>().items.size())
                         : object.is(Kind::range) ? object.as<Range>().length
                                                  : 0;
    const int64_t index = key.as_int() < 0 ? key.as_int() + size : key.as_int();
    if (index >= 0 && index < size) {
      if (object.is_sequence()) return object.as<Sequence>().items[static_cast<size_t>(index)];
      if (object.is(Kind::range)) {
        const auto& range = object.as<Range>();
        return Value::integer(range.at(index)).with_taint(object.tainted());
      }
      const auto& string = object.as<String>();
      const auto at = static_cast<size_t>(index);
      size_t begin = at;
      if (!string.ascii()) {
        budget_.step_bytes(string.text.size());
        begin = byte_offset(string.text.view(), at);
      }
      const size_t end = begin + decode_at(string.text.view(), begin).length;
      return make_string(string.text.slice(begin, end));
    }
  }
  Value out;
  if (key.is_string()) {
    if (own_attribute(object, key.view(), out)) return out;
    return make_undefined(described(object) + " has no attribute '" + std::string(key.view()) +
                          "'");
  }
  return make_undefined(described(object) + " has no element " + to_repr(key).bytes());
}

namespace {

int64_t slice_bound(const Value& value, int64_t otherwise) {
  if (value.is(Kind::none)) return otherwise;
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_int()) fail("slice indices must be integers or None");
  return value.as_int();
}

/// Python's slice.indices.
struct SliceRange {
  int64_t start, stop, step, count;
};

SliceRange resolve_slice(int64_t size, const Value* start, const Value* stop, const Value* step) {
  const int64_t by = step == nullptr ? 1 : slice_bound(*step, 1);
  if (by == 0) fail("slice step cannot be zero");
  const int64_t low = by > 0 ? 0 : -1;
  const int64_t high = by > 0 ? size : size - 1;
  const auto clamp = [&](int64_t at) {
    if (at < 0) at += size;
    return std::clamp(at, low, high);
  };
  const auto bound = [&](const Value* value, int64_t otherwise) {
    if (value == nullptr || value->is(Kind::none)) return otherwise;
    return clamp(slice_bound(*value, 0));
  };
  const int64_t from = bound(start, by > 0 ? low : high);
  const int64_t to = bound(stop, by > 0 ? high : low);
  int64_t count = 0;
  if (by > 0 && from < to) count = (to - from - 1) / by + 1;
  if (by < 0 && from > to) {
    const auto back = uint64_t{0} - static_cast<uint64_t>(by);
    count = static_cast<int64_t>(static_cast<uint64_t>(from - to - 1) / back + 1);
  }
  return {from, to, by, count};
}

}  // namespace

Value Interpreter::slice(const Value& object, const Value* start, const Value* stop,
                         const Value* step) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_sequence()) {
    const auto& items = object.as<Sequence>().items;
    const auto range = resolve_slice(static_cast<int64_t>(items.size()), start, stop, step);
    std::vector<Value> out;
    out.reserve(static_cast<size_t>(range.count));
    for (int64_t i = 0; i < range.count; ++i) {
      out.push_back(items[static_cast<size_t>(range.start + i * range.step)]);
    }
    budget_.step(range.count / 16);
    Value made = object.is(Kind::list) ? make_list(std::move(out)) : make_tuple(std::move(out));
    return std::move(made).with_taint(object.tainted());
  }
  if (object.is_string()) {
    const auto& string = object.as<String>();
    const auto range = resolve_slice(static_cast<int64_t>(string.num_chars), start, stop, step);
    budget_.step_bytes(string.text.size());
    if (range.count == 0) return make_string(string.text.slice(0, 0));
    if (range.step == 1) {
      const auto from = static_cast<size_t>(range.start), n = static_cast<size_t>(range.count);
      if (string.ascii()) return make_string(string.text.slice(from, from + n));
      const size_t begin = byte_offset(string.text.view(), from);
      return make_string(
          string.text.slice(begin, begin + byte_offset(string.text.view().substr(begin), n)));
    }
    std::vector<size_t> offsets;  // of each code point, and the end
    const auto view = string.text.view();
    for (size_t at = 0; at < view.size(); at += decode_at(view, at).length) offsets.push_back(at);
    offsets.push_back(view.size());
    TextBuilder text(budget_);
    budget_.step(range.count);
    for (int64_t i = 0; i < range.count; ++i) {
      const auto at = static_cast<size_t>(range.start + i * range.step);
      text.append(string.text, offsets[at], offsets[at + 1]);
    }
    Text out = text.take();
    out.set_markup(string.text.markup());
    return make_string(std::move(out));
  }
  if (object.is(Kind::range)) {
    const auto& r = object.as<Range>();
    const auto range = resolve_slice(r.length, start, stop, step);
    const auto bound = [&](int64_t index) {
      const auto offset = checked_mul(index, r.step);
      return offset ? checked_add(r.start, *offset) : std::nullopt;
    };
    const auto first = bound(range.start), end = bound(range.stop);
    const auto by = checked_mul(r.step, range.step);
    if (!first || !end || !by) fail_limit("slice of a range: the numbers do not fit 64 bits");
    return make_range(*first, *end, *by).with_taint(object.tainted());
  }
  fail("'" + std::string(type_name(object)) + "' object is not subscriptable by a slice");
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  std::vector<Value> out;
  switch (value.kind()) {
    case Kind::undefined:
      return out;
    case Kind::list:
    case Kind::tuple:
      out = value.as<Sequence>().items;
      break;
    case Kind::string: {
      const auto& text = value.text();
      for (size_t at = 0; at < text.size();) {
        const size_t end = at + decode_at(text.view(), at).length;
        Text letter = text.slice(at, end);
        letter.set_markup(false);
        out.push_back(make_string(std::move(letter)));
        at = end;
        budget_.step();
      }
      break;
    }
    case Kind::dict:
      for (const auto& entry : value.as<Dict>().entries.all()) out.push_back(entry.first);
      break;
    case Kind::view: {
      const auto& view = value.as<View>();
      for (const auto& [key, item] : view.dict.as<Dict>().entries.all()) {
        switch (view.what) {
          case View::What::keys:
            out.push_back(key);
            break;
          case View::What::values:
            out.push_back(item);
            break;
          case View::What::items:
            out.push_back(make_tuple({key, item}).with_taint(value.tainted()));
        }
      }
      break;
    }
    case Kind::range: {
      const auto& range = value.as<Range>();
      for (int64_t i = 0; i < range.length; ++i) {
        out.push_back(Value::integer(range.at(i)).with_taint(value.tainted()));
      }
      break;
    }
    case Kind::iterator: {
      const auto& iterator = value.as<Iterator>();
      out.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.next),
                 iterator.items.end());
      iterator.next = iterator.items.size();
      break;
    }
    default:
      fail("'" + std::string(type_name(value)) + "' object is not iterable");
  }
  budget_.step(static_cast<int64_t>(out.size() / 16));
  return out;
}

int64_t Interpreter::length(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return static_cast<int64_t>(value.as<String>().num_chars);
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(value.as<Sequence>().items.size());
    case Kind::dict:
      return static_cast<int64_t>(value.as<Dict>().entries.size());
    case Kind::view:
      return length(value.as<View>().dict);
    case Kind::range:
      return value.as<Range>().length;
    case Kind::loop:
      return static_cast<int64_t>(value.as<Loop>().items.size());
    default:
      fail("object of type '" + std::string(type_name(value)) + "' has no len()");
  }
}

}  // namespace headrace::jinja
