#include <gtest/gtest.h>

#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

class Statements : public CaseTest {
 protected:
  Statements()
      : CaseTest(render, R"({"l":[1,2,3],"d":{"b":1,"a":2},"s":"str","n":null,
  "tree":[{"v":1,"kids":[{"v":2,"kids":[]},{"v":3,"kids":[{"v":4,"kids":[]}]}]}]})") {}
};

TEST_F(Statements, Loops) {
  check({{"{% for x in l %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}", "1,2,3"},
         {"{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}"
          "{{ loop.length }}{{ loop.first }};{% endfor %}",
          "10323True;21213False;32103False;"},
         {"{% for x in l %}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}", "-2;1-3;2-;"},
         {"{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "aba"},
         {"{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "TrueFalseTrue"},
         {"{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{% else %}none{% endfor %}", "1223"},
         {"{% for x in [] %}{% else %}none{% endfor %}{% for x in nope %}{% else %}!{% endfor %}",
          "none!"},
         {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "b=1;a=2;"},
         {"{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
         {"{% for a, b in [(1, 2, 3)] %}{% endfor %}",
          "error: chat template line 1: too many values to unpack: expected 2, found 3"},
         {"{% for x in n %}{% endfor %}",
          "error: chat template line 1: 'NoneType' object is not iterable"},
         {"{% for x in tree recursive %}{{ x.v }}({{ loop(x.kids) }}){{ loop.depth }}{% endfor %}",
          "1(2()23(4()3)2)1"},
         {"{% for x in l %}{{ loop(l) }}{% endfor %}",
          "error: chat template line 1: the loop must have the 'recursive' marker to be called"}});
}

TEST_F(Statements, BreakAndContinue) {
  check(
      {{"{% for x in l %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"},
       {"{% for x in l %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "13"},
       {"{% for x in l %}{% for y in l %}{% break %}{% endfor %}{{ x }}{% endfor %}", "123"},
       {"{% for x in l %}{% with y = x %}{% if y == 2 %}{% break %}{% endif %}{% endwith %}{{ x }}"
        "{% endfor %}",
        "1"},
       {"{% break %}", "error: chat template line 1: 'break' outside of a loop"},
       {"{% for x in l %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}",
        "error: chat template line 1: 'continue' outside of a loop"}});
}

TEST_F(Statements, SetAndScopes) {
  check({{"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
         {"{% set x = 1 %}{% for i in l %}{% set x = i %}{% endfor %}{{ x }}", "1"},
         {"{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"},
         {"{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}"
          "{{ ns.x }}",
          "7"},
         {"{% for i in l %}{{ y }}{% set y = i %}{% endfor %}{{ y }}", ""},
         {"{% set x %}a{{ 1 }}{% endset %}[{{ x }}]", "[a1]"},
         {"{% set x | upper | trim %} ab {% endset %}[{{ x }}]", "[AB]"},
         {"{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{% endwith %}{{ a }}",
          "21"},
         {"{% filter upper %}a{{ s }}{% endfilter %}", "ASTR"},
         {"{% generation %}x{% set q = 1 %}{% endgeneration %}{{ q }}", "x"},
         {"{% block b %}{{ s }}{% endblock b %}", "str"},
         {"{% set d.x = 1 %}",
          "error: chat template line 1: cannot assign attribute 'x' on non-namespace object 'd'"},
         {"{% for x in l %}{% set loop = 1 %}{% endfor %}",
          "error: chat template line 1: cannot assign to the special variable 'loop' inside a "
          "loop"}});
}

TEST_F(Statements, Macros) {
  check(
      {{"{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}|{{ m(b=3, a=4) }}|{{ m() }}",
        "1-2|4-3|-2"},
       {"{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "11"},
       {"{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=4) }}",
        "(2,){'x': 4}"},
       {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
        "error: chat template line 1: macro 'm' takes not more than 1 argument(s)"},
       {"{% macro m(a) %}{% endmacro %}{{ m(z=2) }}",
        "error: chat template line 1: macro 'm' takes no keyword argument 'z'"},
       {"{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
        "54321"},
       {"{% macro m() %}{{ z }}{% endmacro %}{% set z = 5 %}{{ m() }}", "5"},
       {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ s }}{% endcall %}", "<str>"},
       {"{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a + b }}"
        "{% endcall %}",
        "3"},
       {"{% macro m() %}x{% endmacro %}{% call m() %}{% endcall %}",
        "error: chat template line 1: macro 'm' takes no keyword argument 'caller'"},
       {"{% macro m(a=1, b) %}{% endmacro %}",
        "error: chat template line 1: a parameter without a default follows one with a default"}});
}

TEST_F(Statements, Generators) {
  check({{"{% set g = l | map('string') %}{{ g | join }}{{ g | join }}", "123"},
         {"{% set g = l | select('odd') %}{{ g | first }}{{ g | list }}", "1[3]"},
         {"{% for g in [d] | groupby('a') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}{{ "
          "cycler('a', 'b').next() }}",
          "21a"},
         {"{% set j = joiner() %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "1, 2, 3"}});
}

TEST_F(Statements, FaultsNameLineExpectedAndFound) {
  check(
      {{"\n{% if true %}\n",
        "error: chat template line 2: expected 'elif' or 'else' or 'endif', "
        "found end of template"},
       {"{% if true %}{% endfor %}",
        "error: chat template line 1: unknown tag 'endfor'; expected 'elif' or 'else' or 'endif'"},
       {"{% nope %}", "error: chat template line 1: unknown tag 'nope'"},
       {"{{ 1 2 }}",
        "error: chat template line 1: expected end of print statement '}}', found '2'"},
       {"{{ }}",
        "error: chat template line 1: expected an expression, found end of print statement"},
       {"{% set 1 = 2 %}", "error: chat template line 1: expected a name to assign to, found '1'"},
       {"{% for x l %}", "error: chat template line 1: expected 'in', found 'l'"},
       {"{{ f(a=1, 2) }}", "error: chat template line 1: wrong order of arguments in a call"},
       {"a\n\n{{ n.x.y }}", "error: chat template line 3: None has no attribute 'x'"}});
  for (const char* tag : {"include 'x'", "extends 'x'", "import 'x' as y", "from 'x' import y"}) {
    const auto parsed = ChatTemplate::parse("{% " + std::string(tag) + " %}");
    ASSERT_FALSE(parsed.ok()) << tag;
    EXPECT_EQ(parsed.error().code, ErrorCode::unsupported) << tag;
  }
}

TEST_F(Statements, RaiseExceptionSpeaksInItsOwnWords) {
  const auto result = render_segments("a\n{{ raise_exception('Only ' ~ 1 ~ ' system message') }}");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(result.error().message, "Only 1 system message");
  EXPECT_EQ(result.error().where, "chat template");
  EXPECT_EQ(result.error().hint, "the chat template refused the conversation");
}

TEST_F(Statements, InputAndDates) {
  EXPECT_EQ(render("{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ documents is none }}"
                   "{{ add_generation_prompt }}{{ strftime_now('%d %b %Y') }}"),
            "<s></s>TrueTrueTrue15 Jan 2026");
  EXPECT_EQ(
      render("{{ x }}{{ messages[0].role }}", Json{{"x", 1}}, Json::parse(R"([{"role":"r"}])")),
      "1r");
  EXPECT_EQ(render("{{ x }}", Json::array()),
            "error: chat template: extra variables: expected an object, found array");
}

}  // namespace
}  // namespace headrace::test
