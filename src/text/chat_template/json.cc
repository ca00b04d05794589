#include "text/chat_template/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/printing.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {

namespace {

using Json = nlohmann::ordered_json;

Value convert(Budget& budget, const Json& json, int32_t depth) {
  budget.step();
  if (depth > budget.max_depth()) fail_limit("the conversation nests too deeply (max_depth)");
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Value::integer(static_cast<int64_t>(number));
      }
      return Value::real(static_cast<double>(number));
    }
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      budget.check_bytes(text.size());
      return Value(Kind::string, std::make_shared<String>(Text(text, false), &budget));
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      Shape shape;
      for (const auto& item : json) {
        items.push_back(convert(budget, item, depth + 1).with_taint(true));
        shape.add(items.back());
      }
      return Value(Kind::list, std::make_shared<Sequence>(std::move(items), shape, &budget));
    }
    case Json::value_t::object: {
      Entries entries;
      Shape shape;
      for (const auto& [key, value] : json.items()) {
        Value name(Kind::string, std::make_shared<String>(Text(key, false), &budget));
        Value item = convert(budget, value, depth + 1).with_taint(true);
        shape.add(item);
        shape.add(name);
        entries.set(std::move(name), std::move(item));
      }
      return Value(Kind::dict, std::make_shared<Dict>(std::move(entries), shape, &budget));
    }
    default:
      return Value();
  }
}

class Dumper {
 public:
  Dumper(Interpreter& in, const DumpOptions& options)
      : in_(in), budget_(in.budget()), options_(options), trusted_(options.trusted) {}

  void dump(const Value& value, int level);
  Text take() { return Text(std::move(out_), trusted_); }

 private:
  void add(std::string_view text) {
    budget_.check_bytes(out_.size() + text.size());
    out_ += text;
  }
  void newline(int level) {
    if (!options_.has_indent) return;
    add("\n");
    for (int i = 0; i < level; ++i) add(options_.indent);
    budget_.step(level / 16);
  }
  void number(double value) {
    add(std::isnan(value)   ? "NaN"
        : std::isinf(value) ? (value < 0 ? "-Infinity" : "Infinity")
                            : repr_of_double(value));
  }
  void string(const Text& text);
  void key(const Value& key);
  void list(const std::vector<Value>& items, int level);
  void dict(const Entries& entries, int level);

  Interpreter& in_;
  Budget& budget_;
  const DumpOptions& options_;
  std::string out_;
  bool trusted_;
};

void Dumper::string(const Text& text) {
  trusted_ = trusted_ && text.all_trusted();
  budget_.step_bytes(text.size());
  std::string out = "\"";
  char buffer[16];
  const auto escape = [&](unsigned code) {
    std::snprintf(buffer, sizeof(buffer), "\\u%04x", code);
    out += buffer;
  };
  const auto view = text.view();
  for (size_t at = 0; at < view.size();) {
    const auto c = decode_at(view, at);
    switch (c.value) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (c.value >= 0 && c.value < 0x20) {
          escape(static_cast<unsigned>(c.value));
        } else if (options_.ensure_ascii && c.value > 0xFFFF) {
          const auto offset = static_cast<unsigned>(c.value) - 0x10000;
          escape(0xD800 + (offset >> 10));
          escape(0xDC00 + (offset & 0x3FF));
        } else if (options_.ensure_ascii && c.value > 0x7E) {
          if (c.value == 0x7F)
            out += '\x7F';
          else
            escape(static_cast<unsigned>(c.value));
        } else {
          out += view.substr(at, c.length);
        }
    }
    at += c.length;
  }
  out += '"';
  add(out);
}

void Dumper::key(const Value& key) {
  trusted_ = trusted_ && !key.tainted();
  switch (key.kind()) {
    case Kind::string:
      string(key.text());
      return;
    case Kind::none:
      add("\"null\"");
      return;
    case Kind::boolean:
      add(key.as_int() != 0 ? "\"true\"" : "\"false\"");
      return;
    case Kind::integer:
    case Kind::real:
      add("\"");
      if (key.is_int())
        add(std::to_string(key.as_int()));
      else
        number(key.as_real());
      add("\"");
      return;
    default:
      fail("keys must be str, int, float, bool or None, not " + std::string(type_name(key)));
  }
}

void Dumper::list(const std::vector<Value>& items, int level) {
  if (items.empty()) {
    add("[]");
    return;
  }
  add("[");
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) add(options_.item_separator);
    newline(level + 1);
    dump(items[i], level + 1);
  }
  newline(level);
  add("]");
}

void Dumper::dict(const Entries& entries, int level) {
  if (entries.size() == 0) {
    add("{}");
    return;
  }
  std::vector<const std::pair<Value, Value>*> order;
  for (const auto& entry : entries.all()) order.push_back(&entry);
  if (options_.sort_keys) {
    std::stable_sort(order.begin(), order.end(),
                     [&](const auto* a, const auto* b) { return in_.less(a->first, b->first); });
  }
  add("{");
  bool first = true;
  for (const auto* entry : order) {
    if (!first) add(options_.item_separator);
    first = false;
    newline(level + 1);
    key(entry->first);
    add(options_.key_separator);
    dump(entry->second, level + 1);
  }
  newline(level);
  add("}");
}

void Dumper::dump(const Value& value, int level) {
  budget_.step();
  trusted_ = trusted_ && !value.tainted();
  switch (value.kind()) {
    case Kind::none:
      add("null");
      return;
    case Kind::boolean:
      add(value.as_int() != 0 ? "true" : "false");
      return;
    case Kind::integer:
      add(std::to_string(value.as_int()));
      return;
    case Kind::real:
      number(value.as_real());
      return;
    case Kind::string:
      string(value.text());
      return;
    case Kind::list:
    case Kind::tuple:
      list(value.as<Sequence>().items, level);
      return;
    case Kind::dict:
      dict(value.as<Dict>().entries, level);
      return;
    default:
      fail("object of type " + std::string(type_name(value)) + " is not JSON serializable");
  }
}

}  // namespace

Value from_json(Budget& budget, const Json& json) {
  return convert(budget, json, 1).with_taint(true);
}

Text to_json(Interpreter& in, const Value& value, const DumpOptions& options) {
  Dumper dumper(in, options);
  dumper.dump(value, 0);
  return dumper.take();
}

}  // namespace headrace::jinja
