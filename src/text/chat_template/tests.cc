// The tests of `is`.
#include <algorithm>
#include <unordered_map>

#include "text/chat_template/interpreter.h"
#include "text/chat_template/text_ops.h"

namespace headrace::jinja {

namespace {

template <Kind... kinds>
bool is_kind(Interpreter&, const Value& v, Args& args) {
  const Bound bound("test", args, {});
  return (v.is(kinds) || ...);
}

template <Comparison op>
bool compares(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("comparison test", args, {"other"}, 1);
  return in.compare(op, v, bound[0]);
}

bool remainder_is(Interpreter& in, const Value& v, const Value& divisor, int64_t rest) {
  return in.equal(in.arithmetic(Arithmetic::mod, v, divisor), Value::integer(rest));
}

bool test_true(Interpreter&, const Value& v, Args&) {
  return v.is(Kind::boolean) && v.as_int() != 0;
}
bool test_false(Interpreter&, const Value& v, Args&) {
  return v.is(Kind::boolean) && v.as_int() == 0;
}
bool test_defined(Interpreter&, const Value& v, Args&) {
  return !v.is_undefined();
}
bool test_odd(Interpreter& in, const Value& v, Args&) {
  return remainder_is(in, v, Value::integer(2), 1);
}
bool test_even(Interpreter& in, const Value& v, Args&) {
  return remainder_is(in, v, Value::integer(2), 0);
}
bool test_divisibleby(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("divisibleby", args, {"num"}, 1);
  return remainder_is(in, v, bound[0], 0);
}
bool test_in(Interpreter& in, const Value& v, Args& args) {
  const Bound bound("in", args, {"seq"}, 1);
  return in.contains(bound[0], v);
}
bool test_sameas(Interpreter&, const Value& v, Args& args) {
  const Bound bound("sameas", args, {"other"}, 1);
  if (v.object() != nullptr || bound[0].object() != nullptr) {
    return v.object() == bound[0].object();
  }
  return v.kind() == bound[0].kind() && equals(v, bound[0]);
}
bool test_filter(Interpreter&, const Value& v, Args&) {
  return v.is_string() && find_filter(v.view()) != nullptr;
}
bool test_test(Interpreter&, const Value& v, Args&) {
  return v.is_string() && find_test(v.view()) != nullptr;
}
bool test_escaped(Interpreter&, const Value& v, Args&) {
  return v.is_string() && v.text().markup();
}
bool test_sequence(Interpreter&, const Value& v, Args&) {
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Kind::dict) ||
         v.is(Kind::range);
}
bool test_iterable(Interpreter&, const Value& v, Args&) {
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Kind::dict) ||
         v.is(Kind::view) || v.is(Kind::range) || v.is(Kind::iterator) || v.is(Kind::loop);
}

/// str.islower or str.isupper: some cased letter, and none of the other case.
bool all_of_case(Interpreter& in, const Value& v, bool lower) {
  const Text text = in.to_text(v);
  bool some = false;
  for (size_t at = 0; at < text.size();) {
    const auto c = decode_at(text.view(), at);
    if (lower ? (is_upper(c.value) || is_title(c.value))
              : (is_lower(c.value) || is_title(c.value))) {
      return false;
    }
    some = some || (lower ? is_lower(c.value) : is_upper(c.value));
    at += c.length;
  }
  return some;
}
bool test_lower(Interpreter& in, const Value& v, Args&) {
  return all_of_case(in, v, true);
}
bool test_upper(Interpreter& in, const Value& v, Args&) {
  return all_of_case(in, v, false);
}

constexpr NamedTest kTests[] = {
    {"defined", test_defined},
    {"undefined", is_kind<Kind::undefined>},
    {"none", is_kind<Kind::none>},
    {"boolean", is_kind<Kind::boolean>},
    {"true", test_true},
    {"false", test_false},
    {"integer", is_kind<Kind::integer>},
    {"float", is_kind<Kind::real>},
    {"number", is_kind<Kind::integer, Kind::real, Kind::boolean>},
    {"string", is_kind<Kind::string>},
    {"mapping", is_kind<Kind::dict>},
    {"sequence", test_sequence},
    {"iterable", test_iterable},
    {"callable", is_kind<Kind::function, Kind::loop, Kind::undefined>},
    {"odd", test_odd},
    {"even", test_even},
    {"divisibleby", test_divisibleby},
    {"in", test_in},
    {"sameas", test_sameas},
    {"escaped", test_escaped},
    {"lower", test_lower},
    {"upper", test_upper},
    {"filter", test_filter},
    {"test", test_test},
    {"==", compares<Comparison::eq>},
    {"eq", compares<Comparison::eq>},
    {"equalto", compares<Comparison::eq>},
    {"!=", compares<Comparison::ne>},
    {"ne", compares<Comparison::ne>},
    {"<", compares<Comparison::lt>},
    {"lt", compares<Comparison::lt>},
    {"lessthan", compares<Comparison::lt>},
    {"<=", compares<Comparison::le>},
    {"le", compares<Comparison::le>},
    {">", compares<Comparison::gt>},
    {"gt", compares<Comparison::gt>},
    {"greaterthan", compares<Comparison::gt>},
    {">=", compares<Comparison::ge>},
    {"ge", compares<Comparison::ge>},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const NamedTest& test) { return test.name == name; });
  return found == std::end(kTests) ? nullptr : found->function;
}

}  // namespace headrace::jinja
