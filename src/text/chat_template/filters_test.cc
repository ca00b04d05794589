#include <gtest/gtest.h>

#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

class Filters : public CaseTest {
 protected:
  Filters()
      : CaseTest(eval, R"({"l":[3,1,2],"w":"  pad ","html":"<b>&'\"",
  "users":[{"name":"Bob","age":30,"a":{"b":[1]}},{"name":"alice","age":25},{"name":"Carl","age":30}],
  "d":{"b":1,"a":2,"C":3},"multi":"a\nb\n\nc","u":"h\u00e9 \u00df"})") {}
};

TEST_F(Filters, Strings) {
  check({{"w | trim", "pad"},
         {"'xxaxx' | trim('x')", "a"},
         {"u | upper", "H\xC3\x89 SS"},
         {"'foo-bar (baz) o\\'neil' | title", "Foo-Bar (Baz) O'neil"},
         {"'fOO bar' | capitalize", "Foo bar"},
         {"'aaaa' | replace('a', 'b', 2)", "bbaa"},
         {"'ab' | replace('', '-')", "-a-b-"},
         {"'%s is %05.1f' | format('x', 3.14159)", "x is 003.1"},
         {"multi | indent(2)", "a\n  b\n\n  c"},
         {"multi | indent('> ', true, true)", "> a\n> b\n> \n> c"},
         {"'ab' | center(5)", "  ab "},
         {"'foo bar baz qux' | truncate(9)", "foo..."},
         {"'foo bar baz qux' | truncate(9, true)", "foo ba..."},
         {"'a b/c?\xC3\xA9' | urlencode", "a%20b/c%3F%C3%A9"},
         {"{'a b': 'c&d'} | urlencode", "a+b=c%26d"},
         {"'<p>a &amp; <br> b</p>' | striptags", "a & b"},
         {"'two words' | wordcount", "2"},
         {"{'c': 'x', 'n': none, 'y': '<'} | xmlattr", " c=\"x\" y=\"&lt;\""},
         {"1500000 | filesizeformat", "1.5 MB"}});
}

TEST_F(Filters, Markup) {
  check({{"html | e", "&lt;b&gt;&amp;&#39;&#34;"},
         {"html | e | e", "&lt;b&gt;&amp;&#39;&#34;"},
         {"('<i>' | safe) + '<'", "<i>&lt;"},
         {"'<' + ('<i>' | safe)", "&lt;<i>"},
         {"'<' ~ ('<i>' | safe)", "<<i>"},
         {"('<%s>' | safe) % '<'", "<&lt;>"},
         {"('x' | safe) is escaped", "True"}});
}

TEST_F(Filters, Json) {
  check({{"{'a': '\xC3\xA9<b>'} | tojson", "{\"a\": \"\xC3\xA9<b>\"}"},
         {"'\xC3\xA9\xF0\x9F\x98\x80' | tojson(ensure_ascii=true)", "\"\\u00e9\\ud83d\\ude00\""},
         {"{'a': [1, {}], 'b': []} | tojson(indent=2)",
          "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"},
         {"{'a': [1, 2]} | tojson(separators=(',', ':'))", "{\"a\":[1,2]}"},
         {"d | tojson(sort_keys=true)", "{\"C\": 3, \"a\": 2, \"b\": 1}"},
         {"{1: none, none: true, true: 1.5} | tojson", "{\"1\": 1.5, \"null\": true}"},
         {"'\\n\\x01\"\\\\' | tojson", "\"\\n\\u0001\\\"\\\\\""},
         {"(1, 2) | tojson", "[1, 2]"},
         {"nope | tojson",
          "error: chat template line 1: object of type Undefined is not JSON serializable"}});
}

TEST_F(Filters, Sequences) {
  check({{"l | sort", "[1, 2, 3]"},
         {"['b', 'A', 'c'] | sort(reverse=true)", "['c', 'b', 'A']"},
         {"['b', 'A'] | sort(case_sensitive=true)", "['A', 'b']"},
         {"users | sort(attribute='age,name') | map(attribute='name') | list",
          "['alice', 'Bob', 'Carl']"},
         {"d | dictsort", "[('a', 2), ('b', 1), ('C', 3)]"},
         {"d | dictsort(by='value', reverse=true) | first", "('C', 3)"},
         {"[1, 1, 'a', 'A'] | unique | list", "[1, 'a']"},
         {"users | join(', ', attribute='name')", "Bob, alice, Carl"},
         {"l | sum ~ users | sum(attribute='age')", "685"},
         {"[l | min, l | max, l | first, l | last, l | length]", "[1, 3, 3, 2, 3]"},
         {"[1, 2, 3, 4, 5] | batch(2, 'x') | list", "[[1, 2], [3, 4], [5, 'x']]"},
         {"[1, 2, 3, 4, 5] | slice(3, 'x') | list", "[[1, 2], [3, 4], [5, 'x']]"},
         {"users | groupby('age') | map(attribute='grouper') | list", "[25, 30]"},
         {"l | reverse | list", "[2, 1, 3]"},
         {"'ab' | list ~ d | list", "['a', 'b']['b', 'a', 'C']"},
         {"d | items | list", "[('b', 1), ('a', 2), ('C', 3)]"},
         {"[[1], [2]] | sum(start=[])", "[1, 2]"}});
}

TEST_F(Filters, Selection) {
  check({{"users | map(attribute='a.b.0', default='-') | list", "[1, '-', '-']"},
         {"['a'] | map('replace', 'a', 'b') | list", "['b']"},
         {"l | select('gt', 1) | list", "[3, 2]"},
         {"l | reject('odd') | list", "[2]"},
         {"users | selectattr('age', 'equalto', 30) | map(attribute='name') | list",
          "['Bob', 'Carl']"},
         {"users | rejectattr('a') | list | length", "2"},
         {"(l | select('gt', 9)) and 'a generator is true'", "a generator is true"},
         {"(l | map('string')) | length",
          "error: chat template line 1: object of type 'generator' has no len()"},
         {"l | map('nope') | list", "error: chat template line 1: no filter named 'nope'"}});
}

TEST_F(Filters, Numbers) {
  check({{"['42' | int, '42.9' | int, 'x' | int(5), '0x1F' | int(0, 16), 3.9 | int]",
          "[42, 42, 5, 31, 3]"},
         {"['3.5' | float, 'x' | float(1.5), '1_0' | float]", "[3.5, 1.5, 10.0]"},
         {"[2.5 | round, 3.5 | round, 42.55 | round(1, 'floor'), 1250 | round(-2)]",
          "[2.0, 4.0, 42.5, 1200]"},
         {"[2.675 | round(2), (-5) | abs, -5.5 | abs]", "[2.67, 5, 5.5]"}});
}

TEST_F(Filters, Defaults) {
  check({{"nope | default('x') ~ '' | d('y', true) ~ none | default('z')", "xyNone"},
         {"users[0] | attr('name') is defined", "False"}});
}

TEST_F(Filters, UnknownOnesFailWhereTheyAreWritten) {
  EXPECT_EQ(render("a\n{{ 1 | nope }}"), "error: chat template line 2: no filter named 'nope'");
  EXPECT_EQ(render("{% set x = 1 is nope %}"), "error: chat template line 1: no test named 'nope'");
  // In a branch that is not taken they do no harm, as in Jinja.
  EXPECT_EQ(render("{% if false %}{{ 1 | nope }}{% endif %}ok"), "ok");
  EXPECT_EQ(render("{{ (1 | nope) if false else 2 }}"), "2");
  EXPECT_EQ(ChatTemplate::parse("{{ 1 | nope }}").error().code, ErrorCode::unsupported);
}

TEST_F(Filters, ArgumentsAreChecked) {
  check({{"'a' | upper(1)",
          "error: chat template line 1: upper() takes at most 0 argument(s), found 1"},
         {"l | batch", "error: chat template line 1: batch() misses the argument 'linecount'"},
         {"l | join(x=1)", "error: chat template line 1: join() has no argument named 'x'"},
         {"l | join('a', d='b')",
          "error: chat template line 1: join() got multiple values for argument 'd'"}});
}

}  // namespace
}  // namespace headrace::test
