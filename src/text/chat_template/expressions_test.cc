#include <gtest/gtest.h>

#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

class Expressions : public CaseTest {
 protected:
  Expressions()
      : CaseTest(eval, R"({"s":"Hello","u":"h\u00e9\u2603","l":[3,1,2],"n":null,
  "d":{"b":1,"a":[1,{"x":null}],"items":7},"f":2.5})") {}
};

TEST_F(Expressions, Precedence) {
  check({{"1 + 2 * 3", "7"},
         {"-2 ** 2", "4"},
         {"2 ** 3 ** 2", "64"},
         {"not 1 == 2", "True"},
         {"(1 + 2) ~ 3 * 4", "312"},
         {"1 or 0 and 0", "1"},
         {"not n is none", "False"},
         {"1 < 2 < 3", "True"},
         {"1 < 3 < 2", "False"},
         {"1 if 0 else 2 if 0 else 3", "3"},
         {"'a' ~ 'b' | upper", "aB"},
         {"-5 | abs", "5"},
         {"l | length > 2 and s", "Hello"},
         {"5 not in l", "True"},
         {"(1, 2)[0] + {'a': 1}.a", "2"}});
}

TEST_F(Expressions, ArithmeticIsPythons) {
  check({{"7 // 2", "3"},
         {"-7 // 2", "-4"},
         {"7 % -3", "-2"},
         {"-7.5 % 2", "0.5"},
         {"-7.5 // 2", "-4.0"},
         {"4 / 2", "2.0"},
         {"2 ** 10", "1024"},
         {"2 ** -1", "0.5"},
         {"true + true", "2"},
         {"'ab' * 2 + 'c'", "ababc"},
         {"[1] * 2 + [3]", "[1, 1, 3]"},
         {"1 == 1.0", "True"},
         {"'1' == 1", "False"},
         {"[1, 2] < [1, 3]", "True"},
         {"9007199254740993 == 9007199254740992.0", "False"}});
}

TEST_F(Expressions, ArithmeticFaults) {
  check({{"1 / 0", "error: chat template line 1: division by zero"},
         {"9223372036854775807 + 1", "error: chat template line 1: integer does not fit 64 bits"},
         {"2 ** 64", "error: chat template line 1: integer does not fit 64 bits"},
         {"'a' + 1",
          "error: chat template line 1: unsupported operand type(s) for +: 'str' and 'int'"},
         {"'a' < 1",
          "error: chat template line 1: '<' not supported between instances of 'str' and 'int'"},
         {"1 in s",
          "error: chat template line 1: 'in <string>' requires string as left operand, not int"},
         {"s()", "error: chat template line 1: 'str' object is not callable"}});
}

TEST_F(Expressions, PrintsLikePython) {
  check({{"[1, 'a', \"it's\", n, true, 2.50]", "[1, 'a', \"it's\", None, True, 2.5]"},
         {"{'a': {'b': ()}, 1: (1,)}", "{'a': {'b': ()}, 1: (1,)}"},
         {"['\\n\\t\\x7f\\u200b']", "['\\n\\t\\x7f\\u200b']"},
         {"[1e16, 1e-5, 123456789.125, 1e22, -0.0]", "[1e+16, 1e-05, 123456789.125, 1e+22, -0.0]"},
         {"d", "{'b': 1, 'a': [1, {'x': None}], 'items': 7}"},
         {"range(1, 9, 3)", "range(1, 9, 3)"},
         {"d.keys()", "dict_keys(['b', 'a', 'items'])"},
         {"n", "None"},
         {"{1: 'a', true: 'b'}", "{1: 'b'}"}});
}

TEST_F(Expressions, LooksUpAttributesAndItems) {
  check({{"d.b", "1"},
         {"d['items']", "7"},
         {"d.items() | list | length", "3"},
         {"d.a[1].x", "None"},
         {"d.nope", ""},
         {"d.nope is defined", "False"},
         {"d.nope.x", "error: chat template line 1: 'dict object' has no attribute 'nope'"},
         {"nope.x", "error: chat template line 1: 'nope' is undefined"},
         {"nope + 1", "error: chat template line 1: 'nope' is undefined"},
         {"nope()", "error: chat template line 1: 'nope' is undefined"},
         {"nope ~ 'x'", "x"},
         {"l[-1] ~ l[7]", "2"},
         {"s[1] ~ s[-1] ~ u[2]", "eo\xE2\x98\x83"},
         {"s['upper']()", "HELLO"},
         {"l.0", "3"}});
}

TEST_F(Expressions, Slices) {
  check({{"s[::-1]", "olleH"},
         {"u[::-1]", "\xE2\x98\x83\xC3\xA9h"},
         {"s[1:3]", "el"},
         {"s[-3:-1]", "ll"},
         {"l[::-1]", "[2, 1, 3]"},
         {"l[1:]", "[1, 2]"},
         {"l[:99]", "[3, 1, 2]"},
         {"l[5:]", "[]"},
         {"(1, 2, 3)[::2]", "(1, 3)"},
         {"range(10)[::-3]", "range(9, -1, -3)"},
         {"range(10)[::-3] | list", "[9, 6, 3, 0]"},
         {"range(4)[::2] ~ range(5)[3:3] ~ range(0, 10, 3)[1:]",
          "range(0, 4, 2)range(3, 3)range(3, 12, 3)"},
         {"l[::0]", "error: chat template line 1: slice step cannot be zero"},
         {"l[-9223372036854775807:9223372036854775807:9223372036854775807]", "[3]"}});
}

TEST_F(Expressions, TestsOfKind) {
  check(
      {{"n is none and nope is undefined and s is string", "True"},
       {"[5 is number, 5 is integer, true is integer, 5.0 is float, true is boolean]",
        "[True, True, False, True, True]"},
       {"[d is mapping, l is sequence, s is iterable, 5 is iterable]", "[True, True, True, False]"},
       {"[5 is odd, 4 is even, 6 is divisibleby 3]", "[True, True, True]"},
       {"[5 is eq 5, 5 is gt(4), 3 is in [3], 3 is sameas 3]", "[True, True, True, True]"},
       {"['upper' is filter, 'nope' is filter, 'odd' is test]", "[True, False, True]"},
       {"['a' is lower, 'A' is upper, '1' is lower]", "[True, True, False]"},
       {"s is not none", "True"}});
}

TEST_F(Expressions, CallsWithStars) {
  check({{"range(*[1, 4]) | list", "[1, 2, 3]"},
         {"dict(a=1, **{'b': 2})", "{'a': 1, 'b': 2}"},
         {"dict(a=1, **{'a': 2})", "error: chat template line 1: repeated argument 'a'"},
         {"range(a=1)", "error: chat template line 1: range() takes no keyword arguments"}});
}

}  // namespace
}  // namespace headrace::test
