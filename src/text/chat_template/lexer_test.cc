#include "text/chat_template/lexer.h"

#include <gtest/gtest.h>

#include "text/chat_template/fault.h"
#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

TEST(Lexer, WhitespaceControl) {
  const TemplateCase cases[] = {
      {"a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"},
      {"a\n  {%- if true -%}\n  b\n  {%- endif -%}\nc", "abc"},
      {"  {%+ if true +%}\nb{% endif %}x", "  \nbx"},
      {"{{ 1 }}\n{{ 2 }}", "1\n2"},
      {"a  {{- 1 -}}  b", "a1b"},
      {"  {{ 1 }}", "  1"},
      {"a{# x #}\n{# y #}\nb", "ab"},
      {"  {# c #}\ny {# z #} w", "y  w"},
      {"x\n  {#- a -#}  q", "xq"},
      {"{#+ a +#}\np", "\np"},
      {"\t{% if true %}\t\ntab\n{% endif %}\n", "\t\ntab\n"},
      {"{% if true %}  {% if true %}\nx{% endif %}{% endif %}", "  x"},
      {"a\n", "a"},
      {"a\n\n", "a\n"},
      {"a\r\nb\rc\r\n", "a\nb\nc"},
      {"{%-if true-%} x {%-endif-%}", "x"},
      {"{{ {'a': 1}['a'] }}{{ '}}' }}{{ '%}' }}", "1}}%}"},
      {"a { b } {c", "a { b } {c"},
  };
  for (const auto& c : cases) EXPECT_EQ(render(c.source), c.output) << c.source;
}

TEST(Lexer, RawBlocks) {
  EXPECT_EQ(render("{% raw %} {{ x }} {% if %}{% endraw %}\nz"), " {{ x }} {% if %}z");
  EXPECT_EQ(render("a {%- raw -%}  {{ x }}  {%- endraw -%}  z"), "a{{ x }}z");
  EXPECT_EQ(render("  {% raw %}\n a\n  {% endraw %}\nb"), "\n a\nb");
}

TEST(Lexer, Literals) {
  const TemplateCase cases[] = {
      {"'a\\x41\\u00e9\\101\\n\\q'",
       "aA\xC3\xA9"
       "A\n\\q"},
      {"'it\\'s' \" ok\"", "it's ok"},
      {"\"a\\\\b\"", "a\\b"},
      {"'a\\\nb'", "ab"},
      {"1_000 + 0x1f + 0o17 + 0b11", "1049"},
      {"[1e999, -1e999, 1e-999, 0.0001e999, 1000.0e-999]", "[inf, -inf, 0.0, inf, 0.0]"},
      {"[1e999, -1e999] | tojson", "[Infinity, -Infinity]"},
      {"['1e999' | float, '0.1e-999' | float, ('0.' ~ '0' * 400 ~ '1e9') | float]",
       "[inf, 0.0, 0.0]"},
      {"[('1' ~ '0' * 400 ~ 'e-9') | float, ('1' ~ '0' * 400 ~ 'e-800') | float]", "[inf, 0.0]"},
      {"[1e3, 1.5e-3, 2.0, 1e16, 0.1 + 0.2]", "[1000.0, 0.0015, 2.0, 1e+16, 0.30000000000000004]"},
      {"[true, True, false, none, None]", "[True, True, False, None, None]"},
      {"[[1, 2], [3]].0.1", "2"},
  };
  for (const auto& c : cases) EXPECT_EQ(eval(c.source), c.output) << c.source;
}

TEST(Lexer, FaultsNameLineAndCharacter) {
  const TemplateCase cases[] = {
      {"a\n\n{{ @ }}", "error: chat template line 3: unexpected character '@'"},
      {"{{ (1] }}", "error: chat template line 1: unexpected ']', expected ')'"},
      {"{{ ) }}", "error: chat template line 1: unexpected ')'"},
      {"{{ 'abc }}", "error: chat template line 1: unclosed string: expected '"},
      {"\n{# abc", "error: chat template line 2: missing end of comment: expected '#}'"},
      {"{% raw %} abc",
       "error: chat template line 1: missing end of raw block: expected '{% endraw %}'"},
      {"{{ 99999999999999999999 }}",
       "error: chat template line 1: integer '99999999999999999999' does not fit 64 bits"},
      {"{{ '\\ud800' }}", "error: chat template line 1: \\u escape is not a character"},
      {"{{ '\\x1' }}",
       "error: chat template line 1: truncated \\x escape: expected 2 hexadecimal digits"},
  };
  for (const auto& c : cases) EXPECT_EQ(render(c.source), c.output) << c.source;
}

TEST(Lexer, TokensKnowTheirLine) {
  const auto tokens = jinja::tokenize("a\n{{ x\n}}b{% set y = 'p\nq' %}{{ z }}");
  std::string lines;
  for (const auto& token : tokens) {
    if (token.type == jinja::TokenType::name)
      lines += token.text + std::to_string(token.line) + " ";
  }
  EXPECT_EQ(lines, "x2 set3 y3 z4 ");
}

}  // namespace
}  // namespace headrace::test
