// Whatever a template does, it ends, in bounded memory and stack, with an error that says why.
#include <gtest/gtest.h>

#include <chrono>

#include "text/chat_template/test_render.h"

namespace headrace::test {
namespace {

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

void expect_exhausted(const std::string& source, const Json& variables = Json(),
                      const TemplateLimits& limits = {}) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = render_segments(source, variables, Json::array(), limits);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(result.ok()) << source.substr(0, 100);
  EXPECT_EQ(result.error().code, ErrorCode::resource_exhausted)
      << source.substr(0, 100) << ": " << result.error().to_string();
  EXPECT_LT(took.count(), 60.0) << source.substr(0, 100);
}

TEST(Limits, Steps) {
  const TemplateLimits limits{.max_steps = 100'000};
  expect_exhausted("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
                   Json(), limits);
  expect_exhausted("{% for a in range(9999) %}{% set x = 'a' * 100000 %}{% endfor %}", Json(),
                   limits);
  expect_exhausted(
      "{% set ns = namespace(x=[1]) %}{% for a in range(40) %}{% set ns.x = ns.x + ns.x %}"
      "{% endfor %}",
      Json(), limits);
}

TEST(Limits, SharedPartsCostWhatWalkingThemCosts) {
  // 2^60 leaves if printed, compared or hashed.
  const std::string build =
      "{% set ns = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}{% set ns.a = (ns.a, ns.a) "
      "%}"
      "{% set ns.b = (ns.b, ns.b) %}{% endfor %}";
  expect_exhausted(build + "{{ ns.a }}");
  expect_exhausted(build + "{{ ns.a | tojson }}");
  expect_exhausted(build + "{{ ns.a | pprint }}");
  expect_exhausted(build + "{{ {ns.a: 1, ns.b: 2} | pprint }}");
  expect_exhausted(build + "{{ ns.a == ns.b }}");
  expect_exhausted(build + "{{ ns.a < ns.b }}");
  expect_exhausted(build + "{{ {ns.a: 1} }}");
  expect_exhausted(build + "{{ [ns.a] | unique | list }}");
  expect_exhausted(build + "{{ ns.a in [ns.b] }}");
}

TEST(Limits, OutputAndIntermediateStrings) {
  const TemplateLimits limits{.max_output_bytes = 10'000};
  for (const char* source :
       {"{% for i in range(5000) %}abc{% endfor %}", "{{ 'a' * 10001 }}",
        "{{ ('a' * 10000) | length + ('ab' * 6000) | length }}", "{{ 'a' | center(10001) }}",
        "{{ 'a'.ljust(10001) }}", "{{ 'a'.zfill(99999999999) }}", "{{ 'a' | indent(99999999) }}",
        "{{ '%99999999d' % 1 }}", "{{ '%.9999999d' % 1 }}", "{{ '{:99999999}'.format(1) }}",
        "{{ range(2000) | join('abcdef') }}", "{{ ('a' * 5000) | replace('a', 'bcd') }}",
        "{{ ('a' * 5000).join(['x', 'y', 'z']) }}", "{{ '\t'.expandtabs(99999999) }}",
        "{{ ('<' * 5000) | escape }}", "{{ (['a' * 5000] * 3) | tojson }}",
        "{{ ['a' * 5000] * 3 }}",
        "{% set x %}{% for i in range(5000) %}abc{% endfor %}{% endset %}"}) {
    expect_exhausted(source, Json(), limits);
  }
  EXPECT_TRUE(render_segments("{{ 'a' * 10000 }}", Json(), Json::array(), limits).ok());
}

TEST(Limits, MemoryOfAllValuesTogether) {
  // Each string is small enough; together they would take gigabytes.
  const TemplateLimits limits{.max_output_bytes = 1 << 20};
  expect_exhausted(
      "{% set ns = namespace(l=[]) %}{% for i in range(9000) %}"
      "{% set ns.l = ns.l + ['a' * 1000000] %}{% endfor %}",
      Json(), limits);
  expect_exhausted("{{ ([1] * 900000) * 1000 }}", Json(), limits);
}

TEST(Limits, Ranges) {
  expect_exhausted("{{ range(100001) }}");
  expect_exhausted("{{ range(-9223372036854775807, 9223372036854775807) }}");
  EXPECT_EQ(eval("range(100000) | length"), "100000");
  EXPECT_EQ(eval("range(9223372036854775800, 9223372036854775807) | last"), "9223372036854775806");
}

TEST(Limits, ParserDepth) {
  for (const int n : {1000, 100'000}) {
    expect_exhausted("{{ " + repeat("(", n) + "1" + repeat(")", n) + " }}");
    expect_exhausted("{{ " + repeat("[", n) + repeat("]", n) + " }}");
    expect_exhausted("{{ " + repeat("{1:", n) + "1" + repeat("}", n) + " }}");
    expect_exhausted("{{ " + repeat("-", n) + "1 }}");
    expect_exhausted("{{ " + repeat("not ", n) + "1 }}");
    expect_exhausted("{{ 1" + repeat(" if 1 else 1", n) + " }}");
    expect_exhausted("{{ 1" + repeat(" if 1", n) + " }}");
    expect_exhausted("{{ x" + repeat(".a", n) + " }}");
    expect_exhausted("{{ x" + repeat("[0]", n) + " }}");
    expect_exhausted("{{ x" + repeat("()", n) + " }}");
    expect_exhausted("{{ x" + repeat("|e", n) + " }}");
    expect_exhausted("{{ f" + repeat("(f", n) + repeat(")", n) + " }}");
    expect_exhausted("{% for " + repeat("(", n) + "a" + repeat(")", n) + " in x %}{% endfor %}");
    expect_exhausted(repeat("{% if 1 %}", n));
    expect_exhausted(repeat("{% for x in [1] %}", n));
    expect_exhausted(repeat("{% set x %}", n));
  }
}

TEST(Limits, LongChainsAreFine) {
  EXPECT_EQ(eval("1" + repeat(" + 1", 5000)), "5001");
  EXPECT_EQ(eval("'a'" + repeat(" ~ 'b'", 5000) + "").size(), 5001U);
  EXPECT_EQ(eval("0" + repeat(" or 0", 5000)), "0");
  EXPECT_EQ(render("{% if 0 %}" + repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}"), "x");
  EXPECT_EQ(eval("1" + repeat(" == 1", 5000)), "True");
}

TEST(Limits, RecursionOfMacrosAndLoops) {
  expect_exhausted("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}");
  expect_exhausted("{% macro f() %}{% call f() %}{% endcall %}{{ caller }}{% endmacro %}{{ f() }}");
  expect_exhausted("{% set l = [[1]] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}");
  expect_exhausted(
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}");
  EXPECT_EQ(render("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}.{% endmacro %}{{ f(60) }}"),
            std::string(61, '.'));
}

TEST(Limits, ValuesNestOnlySoDeep) {
  expect_exhausted(
      "{% set ns = namespace(x=1) %}{% for i in range(300) %}{% set ns.x = [ns.x] %}{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(x=1) %}{% for i in range(300) %}{% set ns.x = {'a': ns.x} %}"
      "{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(x=[1]) %}{% for i in range(300) %}{% set ns.x = [ns.x.copy] %}"
      "{% endfor %}");
  expect_exhausted(
      "{% set ns = namespace(x=[1]) %}{% for i in range(300) %}{% set ns.x = joiner(ns.x) %}"
      "{% endfor %}");
  Json deep = 1;
  for (int i = 0; i < 300; ++i) deep = Json::array({deep});
  expect_exhausted("x", Json{{"deep", deep}});
}

TEST(Limits, ValuesThatHoldThemselves) {
  expect_exhausted("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}");
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.x = ns %}{% macro m() %}{{ ns.x.x.y }}"
                   "{% endmacro %}{% set ns.m = m %}{{ ns.m() }}ok"),
            "ok");
  EXPECT_EQ(render("{% for x in [1] %}{{ loop.changed(loop) }}{% endfor %}"), "True");
  // A chain of namespaces as long as the loop: taking it apart must not recurse.
  EXPECT_EQ(render("{% set ns = namespace(head=none) %}{% for i in range(50000) %}"
                   "{% set ns.head = namespace(next=ns.head) %}{% endfor %}ok"),
            "ok");
  EXPECT_EQ(render("{% set ns = namespace(m=none) %}{% for i in range(20000) %}{% set p = ns.m %}"
                   "{% macro m() %}{{ p }}{% endmacro %}{% set ns.m = m %}{% endfor %}ok"),
            "ok");
}

TEST(Limits, SearchingTextIsLinear) {
  const std::string big = "{% set m = 'a' * 2000000 %}{% set h = m[:1000000] %}";
  const TemplateLimits limits{.max_steps = 4'000'000};  // making the strings takes most
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [expression, output] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"m.count(h ~ 'b')", "0"},
           {"m.count(h)", "2"},
           {"m.find('b' ~ h)", "-1"},
           {"m.rfind('b' ~ h)", "-1"},
           {"m.rfind(h ~ 'b')", "-1"},
           {"(h ~ 'b') in m", "False"},
           {"m.replace(h ~ 'b', '') | length", "2000000"},
           {"m | replace('b' ~ h, '') | length", "2000000"},
           {"m.split(h ~ 'b') | length", "1"},
           {"m.rsplit('b' ~ h) | length", "1"},
           {"m.partition(h ~ 'b')[0] | length", "2000000"},
           {"m.rpartition('b' ~ h)[2] | length", "2000000"},
           {"m.strip('b' * 1000000 ~ 'a') | length", "0"},
           {"m | trim('b' * 1000000 ~ 'a') | length", "0"}}) {
    const auto result = render_segments(big + "{{ " + expression + " }}", Json(), Json(), limits);
    ASSERT_TRUE(result.ok()) << expression << ": " << result.error().to_string();
    EXPECT_EQ(joined(*result), output) << expression;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 30.0);
}

TEST(Limits, MethodsThatLookAtAllOfAStringCostSteps) {
  const TemplateLimits limits{.max_steps = 3'000'000};  // making the string takes 2 000 000
  const std::string loop = "{% set m = 'a' * 2000000 %}{% for i in range(1000) %}{% set x = ";
  for (const char* expression : {"m.partition('b')", "m.isascii()", "m.removeprefix('a')",
                                 "'a'.strip(m)", "'b' in m", "(' ' ~ m) | truncate(1000000)"}) {
    expect_exhausted(loop + expression + " %}{% endfor %}", Json(), limits);
  }
}

TEST(Limits, LongConversationsAreCheap) {
  Json messages = Json::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(2000, 'x')}});
  }
  const std::string source =
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' "
      "}}"
      "{% endfor %}";
  const auto start = std::chrono::steady_clock::now();
  const auto result = render_segments(source, Json(), messages);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_GT(joined(*result).size(), 4'000'000U);
  EXPECT_LT(took.count(), 10.0);
}

}  // namespace
}  // namespace headrace::test
