// Python's operators on values, and the attributes of `loop`.
#include <cmath>

#include "base/checked.h"
#include "text/chat_template/format.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/markup.h"
#include "text/chat_template/text_search.h"

namespace headrace::jinja {

namespace {

std::string_view symbol(Arithmetic op) {
  switch (op) {
    case Arithmetic::add:
      return "+";
    case Arithmetic::sub:
      return "-";
    case Arithmetic::mul:
      return "*";
    case Arithmetic::div:
      return "/";
    case Arithmetic::floordiv:
      return "//";
    case Arithmetic::mod:
      return "%";
    case Arithmetic::pow:
      return "**";
  }
  return "?";
}

[[noreturn]] void fail_operands(Arithmetic op, const Value& a, const Value& b) {
  fail("unsupported operand type(s) for " + std::string(symbol(op)) + ": '" +
       std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
}

[[noreturn]] void fail_overflow() {
  fail("integer does not fit 64 bits");
}

int64_t must(std::optional<int64_t> value) {
  if (!value) fail_overflow();
  return *value;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  for (; exponent > 0; --exponent) result = must(checked_mul(result, base));
  return Value::integer(result);
}

/// Towards minus infinity, as Python divides.
int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return must(checked_mul(a, int64_t{-1}));
  const int64_t quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

double float_mod(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0.0 && ((rest < 0) != (b < 0))) return rest + b;
  return rest == 0.0 ? std::copysign(0.0, b) : rest;
}

double float_floor_div(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0.0 && ((rest < 0) != (b < 0))) quotient -= 1.0;
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1.0 : floor;
}

Value arithmetic_int(Arithmetic op, int64_t a, int64_t b) {
  switch (op) {
    case Arithmetic::add:
      return Value::integer(must(checked_add(a, b)));
    case Arithmetic::sub: {
      int64_t out = 0;
      if (__builtin_sub_overflow(a, b, &out)) fail_overflow();
      return Value::integer(out);
    }
    case Arithmetic::mul:
      return Value::integer(must(checked_mul(a, b)));
    case Arithmetic::pow:
      return power(a, b);
    default:
      break;
  }
  if (b == 0) fail("division by zero");
  if (op == Arithmetic::floordiv) return Value::integer(floor_div(a, b));
  if (op == Arithmetic::mod) return Value::integer(floor_mod(a, b));
  return Value::real(static_cast<double>(a) / static_cast<double>(b));
}

Value arithmetic_real(Arithmetic op, double a, double b) {
  switch (op) {
    case Arithmetic::add:
      return Value::real(a + b);
    case Arithmetic::sub:
      return Value::real(a - b);
    case Arithmetic::mul:
      return Value::real(a * b);
    case Arithmetic::pow: {
      if (a == 0.0 && b < 0.0) fail("0.0 cannot be raised to a negative power");
      if (a < 0.0 && std::isfinite(b) && std::floor(b) != b) {
        fail("a negative number to a fractional power is not a real number");
      }
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("float overflow");
      return Value::real(result);
    }
    default:
      break;
  }
  if (b == 0.0) fail("float division by zero");
  if (op == Arithmetic::floordiv) return Value::real(float_floor_div(a, b));
  if (op == Arithmetic::mod) return Value::real(float_mod(a, b));
  return Value::real(a / b);
}

Value add_strings(Interpreter& in, const Text& a, const Text& b) {
  TextBuilder out(in.budget());
  const bool markup = a.markup() || b.markup();
  append_escaped_if(out, a, markup && !a.markup());
  append_escaped_if(out, b, markup && !b.markup());
  Text text = out.take();
  text.set_markup(markup);
  return in.make_string(std::move(text));
}

Value repeat(Interpreter& in, const Value& value, int64_t count) {
  if (value.is_string()) {
    TextBuilder out(in.budget());
    if (count > 0 && !value.text().empty()) {
      in.budget().step(count);
      out.repeat(value.text(), count);
    }
    Text text = out.take();
    text.set_markup(value.text().markup());
    return in.make_string(std::move(text));
  }
  const auto& items = value.as<Sequence>().items;
  std::vector<Value> out;
  if (count > 0 && !items.empty()) {
    // One step an item: what cannot be paid is not allocated.
    in.budget().check_product(items.size() * sizeof(Value), count);
    in.budget().step(static_cast<int64_t>(items.size()) * count);
    out.reserve(items.size() * static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  Value made = value.is(Kind::list) ? in.make_list(std::move(out)) : in.make_tuple(std::move(out));
  return std::move(made).with_taint(value.tainted());
}

Value add_sequences(Interpreter& in, const Value& a, const Value& b) {
  std::vector<Value> out = a.as<Sequence>().items;
  const auto& more = b.as<Sequence>().items;
  in.budget().step(static_cast<int64_t>((out.size() + more.size()) / 16));
  out.insert(out.end(), more.begin(), more.end());
  Value made = a.is(Kind::list) ? in.make_list(std::move(out)) : in.make_tuple(std::move(out));
  return std::move(made).with_taint(a.tainted() || b.tainted());
}

}  // namespace

Value Interpreter::arithmetic(Arithmetic op, const Value& a, const Value& b) {
  if (a.is_string() && op == Arithmetic::mod) {
    // "%" formats; an undefined argument formats as empty text.
    return format_percent(*this, a.text(), b);
  }
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) {
    Value result = a.is_int() && b.is_int() ? arithmetic_int(op, a.as_int(), b.as_int())
                                            : arithmetic_real(op, a.as_real(), b.as_real());
    return std::move(result).with_taint(a.tainted() || b.tainted());
  }
  if (op == Arithmetic::add) {
    if (a.is_string() && b.is_string()) return add_strings(*this, a.text(), b.text());
    if (a.is_sequence() && a.kind() == b.kind()) return add_sequences(*this, a, b);
  }
  if (op == Arithmetic::mul) {
    const auto repeatable = [](const Value& v) { return v.is_string() || v.is_sequence(); };
    if (repeatable(a) && b.is_int()) return repeat(*this, a, b.as_int());
    if (repeatable(b) && a.is_int()) return repeat(*this, b, a.as_int());
  }
  fail_operands(op, a, b);
}

Value Interpreter::negate(const Value& value, char op) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_number()) {
    fail("bad operand type for unary " + std::string(1, op) + ": '" +
         std::string(type_name(value)) + "'");
  }
  if (!value.is_int()) {
    return Value::real(op == '-' ? -value.as_real() : value.as_real()).with_taint(value.tainted());
  }
  const int64_t number =
      op == '-' ? must(checked_mul(value.as_int(), int64_t{-1})) : value.as_int();
  return Value::integer(number).with_taint(value.tainted());
}

bool Interpreter::equal(const Value& a, const Value& b) {
  budget_.step(std::min(a.shape().weight, b.shape().weight));
  return equals(a, b);
}

bool Interpreter::less(const Value& a, const Value& b) {
  budget_.step(std::min(a.shape().weight, b.shape().weight));
  return ordered(a, b, "<");
}

bool Interpreter::compare(Comparison op, const Value& a, const Value& b) {
  if (op == Comparison::in) return contains(b, a);
  if (op == Comparison::not_in) return !contains(b, a);
  budget_.step(std::min(a.shape().weight, b.shape().weight));
  switch (op) {
    case Comparison::eq:
      return equals(a, b);
    case Comparison::ne:
      return !equals(a, b);
    case Comparison::lt:
      return ordered(a, b, "<");
    case Comparison::le:
      return ordered(a, b, "<=");
    case Comparison::gt:
      return ordered(a, b, ">");
    default:
      return ordered(a, b, ">=");
  }
}

bool Interpreter::contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::string:
      if (!item.is_string()) {
        fail("'in <string>' requires string as left operand, not " + std::string(type_name(item)));
      }
      return TextSearch(budget_, item.view()).find(container.view()) != std::string_view::npos;
    case Kind::dict:
      budget_.step(item.shape().weight);
      return container.as<Dict>().entries.find(item) != nullptr;
    case Kind::view:
      if (container.as<View>().what == View::What::keys) {
        return contains(container.as<View>().dict, item);
      }
      break;
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::space:
    case Kind::function:
      fail("argument of type '" + std::string(type_name(container)) + "' is not iterable");
    case Kind::list:
    case Kind::tuple:
      for (const auto& other : container.as<Sequence>().items) {
        if (equal(other, item)) return true;
      }
      return false;
    default:
      break;
  }
  for (const auto& other : iterate(container)) {
    if (equal(other, item)) return true;
  }
  return false;
}

bool Interpreter::loop_attribute(const Value& object, std::string_view name, Value& out) {
  const auto& loop = object.as<Loop>();
  const auto index0 = static_cast<int64_t>(loop.index0);
  const auto size = static_cast<int64_t>(loop.items.size());
  if (name == "index") {
    out = Value::integer(index0 + 1);
  } else if (name == "index0") {
    out = Value::integer(index0);
  } else if (name == "revindex") {
    out = Value::integer(size - index0);
  } else if (name == "revindex0") {
    out = Value::integer(size - index0 - 1);
  } else if (name == "first") {
    out = Value::boolean(index0 == 0);
  } else if (name == "last") {
    out = Value::boolean(index0 + 1 >= size);
  } else if (name == "length") {
    out = Value::integer(size);
  } else if (name == "depth" || name == "depth0") {
    out = Value::integer(loop.depth0 + (name == "depth" ? 1 : 0));
  } else if (name == "previtem") {
    out = index0 > 0 ? loop.items[loop.index0 - 1] : make_undefined("there is no previous item");
  } else if (name == "nextitem") {
    out = index0 + 1 < size ? loop.items[loop.index0 + 1] : make_undefined("there is no next item");
  } else {
    static constexpr auto kCycle = [](Interpreter&, const Value& self, Args& args) -> Value {
      if (args.positional.empty()) fail("loop.cycle: no items for cycling given");
      return args.positional[self.as<Loop>().index0 % args.positional.size()];
    };
    static constexpr auto kChanged = [](Interpreter& in, const Value& self, Args& args) -> Value {
      return Value::boolean(in.loop_changed(self.object(), args));
    };
    if (name != "cycle" && name != "changed") return false;
    const Builtin body = name == "cycle" ? Builtin(kCycle) : Builtin(kChanged);
    out = Value(Kind::function,
                std::make_shared<NativeFunction>("loop." + std::string(name), body, object));
  }
  return true;
}

bool Interpreter::loop_changed(const std::shared_ptr<const Object>& object, Args& args) {
  const auto& loop = static_cast<const Loop&>(*object);
  bool same = loop.has_changed && loop.last_changed.size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i) {
    same = equal(loop.last_changed[i], args.positional[i]);
  }
  if (same) return false;
  if (!loop.has_changed) {
    budget_.take(sizeof(Loop));
    loops_.push_back(object);
  }
  loop.has_changed = true;
  loop.last_changed = std::move(args.positional);
  return true;
}

}  // namespace headrace::jinja
