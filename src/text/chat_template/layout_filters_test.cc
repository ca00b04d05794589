// The filters wordwrap and pprint. What is expected is what Jinja 3.1 on Python 3.11 prints.
#include <gtest/gtest.h>

#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

class LayoutFilters : public CaseTest {
 protected:
  LayoutFilters()
      : CaseTest(eval, R"({"l":[3,1,2],"d":{"b":1,"a":2,"C":3},
  "users":[{"name":"Bob","age":30,"a":{"b":[1]}},{"name":"alice","age":25},{"name":"Carl","age":30}],
  "long":"The quick brown fox jumps over the lazy dog, and then it \"rests\": it's a dog's life after all\nsecond line"})") {
  }
};
using WordWrap = LayoutFilters;
using PrettyPrint = LayoutFilters;

TEST_F(WordWrap, BreaksAtGaps) {
  check(
      {{"'The quick brown fox' | wordwrap(9)", "The quick\nbrown fox"},
       {"'one two  three' | wordwrap(7)", "one two\nthree"},
       {"('ab ' * 30) | wordwrap | length", "89"},
       {"'abcd' | wordwrap(0)",
        "error: chat template line 1: wordwrap: expected a width of at least 1, found 0"},
       {"'' | wordwrap(0)", ""},
       {"1 | wordwrap", "error: chat template line 1: wordwrap: expected a string, found 'int'"}});
}

TEST_F(WordWrap, EachLineIsAParagraph) {
  check({{"'a\n\n  b c d' | wordwrap(3)", "a\n\n  b\nc d"},
         {"'a\\n' | wordwrap", "a"},
         {"' \\n\\tb' | wordwrap", "\n\tb"},
         {"'a b\\r\\nc' | wordwrap(1, wrapstring='|')", "a|b|c"}});
}

TEST_F(WordWrap, BreaksLongWords) {
  check({{"'extraordinary' | wordwrap(5)", "extra\nordin\nary"},
         {"'an extraordinary one' | wordwrap(5, false)", "an\nextraordinary\none"},
         {"'extraordinary-long word' | wordwrap(6)", "extrao\nrdinar\ny-long\nword"},
         {"'1-2-3-4-5' | wordwrap(4)", "1-2-\n3-4-\n5"},
         {"'1-2-3-4-5' | wordwrap(4, break_on_hyphens=false)", "1-2-\n3-4-\n5"},
         {"'--------' | wordwrap(3)", "---\n---\n--"},
         {"'abcd toolongword' | wordwrap(5)", "abcd \ntoolo\nngwor\nd"}});
}

TEST_F(WordWrap, BreaksAfterHyphensAndAroundDashes) {
  check({{"'goof-ball and x-ray' | wordwrap(6)", "goof-\nball\nand\nx-ray"},
         {"'goof-ball and x-ray' | wordwrap(6, break_on_hyphens=false)", "goof-b\nall\nand\nx-ray"},
         {"'a-b-cd ef-g-h' | wordwrap(5, break_long_words=false)", "a-b-\ncd\nef-\ng-h"},
         {"'wait--what, yes' | wordwrap(6)", "wait--\nwhat,\nyes"},
         {"'use the -b or --long option' | wordwrap(8)", "use the\n-b or\n--long\noption"}});
}

TEST_F(WordWrap, CountsCharactersAndKeepsMarkup) {
  check({{"'\xC2\xA0\xC2\xA0 h\xC3\xA9 h\xC3\xA9' | wordwrap(3)",
          "\xC2\xA0\xC2\xA0\nh\xC3\xA9\nh\xC3\xA9"},
         {"'a < b' | wordwrap(2, wrapstring='<br>' | safe)", "a<br>&lt;<br>b"},
         {"('a < b' | safe | wordwrap(3)) is escaped", "False"}});
}

TEST_F(PrettyPrint, ShortValuesAreOneLine) {
  check({{"l | pprint", "[3, 1, 2]"},
         {"'a' | pprint", "'a'"},
         {"d | pprint", "{'C': 3, 'a': 2, 'b': 1}"},
         {"{1: 'a', 'b': none, none: 1.5, (1, 2): true} | pprint",
          "{None: 1.5, 1: 'a', 'b': None, (1, 2): True}"},
         {"('<b>' | safe) | pprint", "Markup('<b>')"},
         {"nope | pprint", "Undefined"},
         {"range(3) | pprint", "range(0, 3)"},
         {"d.items() | pprint", "dict_items([('b', 1), ('a', 2), ('C', 3)])"},
         {"[] | pprint ~ {} | pprint ~ (1,) | pprint", "[]{}(1,)"}});
}

TEST_F(PrettyPrint, LongOnesAreLaidOut) {
  check({{"users | pprint",
          "[{'a': {'b': [1]}, 'age': 30, 'name': 'Bob'},\n {'age': 25, 'name': 'alice'},\n"
          " {'age': 30, 'name': 'Carl'}]"},
         {"[('a' * 40, 'b' * 40), ('c' * 90,)] | pprint", "[('" + std::string(40, 'a') + "',\n  '" +
                                                              std::string(40, 'b') + "'),\n ('" +
                                                              std::string(90, 'c') + "',)]"},
         {"[[], (), {}, '', 'y' * 80] | pprint",
          "[[],\n (),\n {},\n '',\n '" + std::string(80, 'y') + "']"},
         // Exactly what fits, and one more.
         {"['a' * 38, 'b' * 34] | pprint",
          "['" + std::string(38, 'a') + "', '" + std::string(34, 'b') + "']"},
         {"['a' * 38, 'b' * 35] | pprint",
          "['" + std::string(38, 'a') + "',\n '" + std::string(35, 'b') + "']"},
         {"users | groupby('age') | pprint",
          "[(25, [{'name': 'alice', 'age': 25}]),\n (30, [{'name': 'Bob', 'age': 30, 'a': {'b': "
          "[1]}}, {'name': 'Carl', 'age': 30}])]"}});
}

TEST_F(PrettyPrint, LongStringsAreLaidOut) {
  check({{"long | pprint",
          "('The quick brown fox jumps over the lazy dog, and then it \"rests\": it\\'s a '\n"
          " \"dog's life after all\\n\"\n 'second line')"},
         {"{'key': long} | pprint",
          "{'key': 'The quick brown fox jumps over the lazy dog, and then it \"rests\": '\n"
          "        \"it's a dog's life after all\\n\"\n        'second line'}"},
         {"('x' * 90) | pprint", "'" + std::string(90, 'x') + "'"}});
}

TEST_F(LayoutFilters, CostStepsInProportion) {
  const TemplateLimits limits{.max_steps = 6'000'000};  // making the strings takes half
  const std::string big =
      "{% set m = 'a' * 1000000 %}{% set h = 'a-b-' * 250000 %}{% set w = 'ab ' * 300000 %}"
      "{% set s = '\xC2\xA0' * 500000 ~ 'x' %}";
  for (const char* expression :
       {"m | wordwrap(999999)", "h | wordwrap(100000)", "s | wordwrap(100)", "w | wordwrap(100)",
        "('a' ~ '-' * 500000 ~ 'a') | wordwrap(100)", "[[[[m]]]] | pprint", "w | pprint",
        "{m: {m: s}} | pprint", "[[[[m | safe]]]] | pprint"}) {
    const auto result =
        render_segments(big + "{{ (" + expression + ") | length }}", Json(), Json::array(), limits);
    EXPECT_TRUE(result.ok()) << expression << ": " << result.error().to_string();
  }
  for (const char* expression :
       {"m | wordwrap(1, wrapstring=m)", "{m: ['b' * 70] * 99} | pprint"}) {
    const auto result = render_segments(big + "{{ " + expression + " }}", Json(), Json::array());
    ASSERT_FALSE(result.ok()) << expression;
    EXPECT_EQ(result.error().code, ErrorCode::resource_exhausted) << expression;
  }
}

}  // namespace
}  // namespace headrace::test
