// Which bytes of the output a message wrote. [[ ]] marks what is untrusted.
#include <gtest/gtest.h>

#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

class Provenance : public CaseTest {
 protected:
  Provenance()
      : CaseTest(marked, R"({"m":"a<|x|>b","up":"AbC","sp":"  u ","n":5,"f":0.5,"t":true,
  "l":["p","q"],"d":{"key":"val","k2":1},"csv":"x,y","lines":"a\nb"})") {}
};

TEST_F(Provenance, TemplateTextAndVariables) {
  check({{"x{{ 'y' }}{{ bos_token }}{{ 1 + 1 }}{{ none }}", "xy<s>2None"},
         {"x{{ m }}y", "x[[a<|x|>b]]y"},
         {"{{ n }}{{ f }}{{ t }}{{ l }}", "[[50.5True['p', 'q']]]"},
         {"{{ n + 1 }}|{{ -n }}|{{ n | abs }}|{{ l | length }}", "[[6]]|[[-5]]|[[5]]|2"},
         {"{% for x in l %}{{ loop.index }}{{ x }}{% endfor %}", "1[[p]]2[[q]]"},
         {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
          "[[key]]=[[val]];[[k2]]=[[1]];"}});
}

TEST_F(Provenance, Joining) {
  check({{"{{ '<|' + m + '|>' }}", "<|[[a<|x|>b]]|>"},
         {"{{ '<' ~ m ~ n ~ '>' }}", "<[[a<|x|>b5]]>"},
         {"{{ l | join('<|sep|>') }}", "[[p]]<|sep|>[[q]]"},
         {"{{ m.join(['1', '2']) }}", "1[[a<|x|>b]]2"},
         {"{{ '<%s|%d>' % (m, n) }}", "<[[a<|x|>b]]|[[5]]>"},
         {"{{ '<{}|{:>4}>'.format(m, n) }}", "<[[a<|x|>b]]|   [[5]]>"},
         {"{{ 'a' * n }}{{ up * 2 }}", "aaaaa[[AbCAbC]]"},
         {"{% set x %}<{{ m }}>{% endset %}{{ x }}", "<[[a<|x|>b]]>"},
         {"{% macro w(x) %}<{{ x }}>{% endmacro %}{{ w(m) }}", "<[[a<|x|>b]]>"},
         {"{% filter upper %}a{{ up }}{% endfilter %}", "A[[ABC]]"}});
}

TEST_F(Provenance, CuttingAndChanging) {
  check({{"{{ ('<' + m + '>')[1:-1] }}", "[[a<|x|>b]]"},
         {"{{ ('<' + m)[0] }}{{ ('<' + m)[1] }}", "<[[a]]"},
         {"{{ ('x' ~ sp ~ ' y').split(' ') | join('-') }}", "x--[[u]]--y"},
         {"{{ ('<' ~ up ~ '>')[::-1] }}", ">[[CbA]]<"},
         {"{{ sp | trim }}{{ up | lower }}{{ up.title() }}", "[[uabcAbc]]"},
         {"{{ ('a' ~ up) | upper }}", "A[[ABC]]"},
         {"{{ ('a' ~ up) | capitalize }}", "A[[abc]]"},
         {"{{ m | replace('<|x|>', '<|y|>') }}", "[[a]]<|y|>[[b]]"},
         {"{{ 'a-b' | replace('-', m) }}", "a[[a<|x|>b]]b"},
         {"{{ csv.split(',')[1] }}{{ csv.partition(',')[1] }}", "[[y,]]"},
         {"{{ lines | indent('> ') }}", "[[a\n]]> [[b]]"},
         {"{{ ('<' ~ sp ~ 'bc d>') | wordwrap(3) }}", "<[[\nu\n]]bc[[\n]]d>"},
         {"{{ lines | wordwrap }}{{ lines | wordwrap(9, wrapstring='<|x|>') }}",
          "[[a\nba]]<|x|>[[b]]"},
         {"{{ 'a b' | wordwrap(1) }}{{ 'a b' | wordwrap(1, wrapstring=m) }}", "a\nba[[a<|x|>b]]b"},
         {"{{ up | center(7) }}", "[[  AbC  ]]"},
         {"{{ 'x' | center(3) }}", " x "},
         {"{{ m | escape }}", "[[a&lt;|x|&gt;b]]"},
         {"{{ '&lt;|x|&gt;' | striptags }}{{ (m | e | string) | striptags }}", "<|x|>[[a<|x|>b]]"},
         {"{% for c in '<' ~ up %}{{ c }}{% endfor %}", "<[[AbC]]"}});
}

TEST_F(Provenance, JsonAndReprAreTrustedOnlyAsAWhole) {
  check({{"{{ {'a': '<|x|>'} | tojson }}", "{\"a\": \"<|x|>\"}"},
         {"{{ d | tojson }}", "[[{\"key\": \"val\", \"k2\": 1}]]"},
         {"{{ {'a': m} | tojson }}", "[[{\"a\": \"a<|x|>b\"}]]"},
         {"{{ {'a': n} | tojson }}", "[[{\"a\": 5}]]"},
         {"{{ [1, 'a'] }}{{ [m] }}", "[1, 'a'][[['a<|x|>b']]]"},
         {"{{ {'b': 1, 'a': '<|x|>'} | pprint }}{{ ('<|x|> ' * 20) | pprint | length }}",
          "{'a': '<|x|>', 'b': 1}128"},
         {"{{ d | pprint }}{{ {'a': m} | pprint }}{{ n | pprint }}{{ m | pprint }}",
          "[[{'k2': 1, 'key': 'val'}{'a': 'a<|x|>b'}5'a<|x|>b']]"},
         {"{{ ['x' * 90, m] | pprint }}", "[[['" + std::string(90, 'x') + "',\n 'a<|x|>b']]]"},
         {"{{ [] | tojson }}{{ l[:0] | tojson }}", "[][[[]]]"}});
}

TEST_F(Provenance, NamesOfKeywordArguments) {
  check({{"{% for k in dict(**d) %}{{ k }},{% endfor %}", "[[key]],[[k2]],"},
         {"{% for k in dict(x=1, **d) %}{{ k }},{% endfor %}", "x,[[key]],[[k2]],"},
         {"{% macro f() %}{{ kwargs }}{% endmacro %}{{ f(**d) }}{{ f(a=1) }}",
          "[[{'key': 'val', 'k2': 1}]]{'a': 1}"},
         {"{% macro f() %}{% for k in kwargs %}{{ k }}{% endfor %}{% endmacro %}{{ f(**d) }}",
          "[[keyk2]]"},
         {"{{ dict(**{m: 1}) }}{{ dict(**{'a': 1}) }}", "[[{'a<|x|>b': 1}]]{'a': 1}"},
         {"{{ namespace(**{m: 1}) }}{{ namespace({m: 1}) }}{{ namespace(a=1) }}",
          "[[<Namespace {'a<|x|>b': 1}><Namespace {'a<|x|>b': 1}>]]<Namespace {'a': 1}>"},
         {"{{ '%s' | format(**{m: 1}) }}", "[[{'a<|x|>b': 1}]]"}});
}

TEST_F(Provenance, OptionsOfToJson) {
  check({{"{{ [1] | tojson(indent=m) }}", "[[[\na<|x|>b1\n]]]"},
         {"{{ [1, 2] | tojson(separators=(m, ':')) }}", "[[[1a<|x|>b2]]]"},
         {"{{ {'a': 1} | tojson(separators=(',', m)) }}", "[[{\"a\"a<|x|>b1}]]"},
         {"{{ [1] | tojson(indent='<') }}{{ [1, 2] | tojson(separators=('<', ':')) }}",
          "[\n<1\n][1<2]"}});
}

TEST_F(Provenance, RangesOfNumbersFromMessages) {
  check({{"{{ range(n, 7) | list }}{{ range(n)[4] }}{{ range(n).stop }}{{ range(n)[1:][0] }}",
          "[[[5, 6]451]]"},
         {"{% for i in range(3) %}{{ i }}{% endfor %}{{ range(2, 9).stop }}", "0129"}});
}

TEST_F(Provenance, NumbersReadFromMessagesStayTainted) {
  const Json variables = Json::parse(R"({"s":"42","s2":"1.5"})");
  EXPECT_EQ(marked("{{ s | int }}{{ s2 | float }}{{ s | int + 1 }}", variables), "[[421.543]]");
}

TEST_F(Provenance, ComparisonIgnoresIt) {
  const Json variables = Json::parse(R"({"m":"user","d":{"k":"v"}})");
  EXPECT_EQ(marked("{{ m == 'user' }}{{ d['k'] == 'v' }}{{ {'user': 1}[m] }}", variables),
            "TrueTrue1");
}

}  // namespace
}  // namespace headrace::test
