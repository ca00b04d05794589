#include <gtest/gtest.h>

#include "text/chat_template/test_cases.h"

namespace headrace::test {
namespace {

class Methods : public CaseTest {
 protected:
  Methods() : CaseTest(eval, R"({"d":{"b":1,"a":null},"l":[1,2,1],"u":"h\u00e9llo"})") {}
};
using StringMethods = Methods;
using ContainerMethods = Methods;

TEST_F(StringMethods, Cutting) {
  check({{"'  a '.strip() ~ '|' ~ 'xaxx'.rstrip('x') ~ '|' ~ 'xyax'.lstrip('yx')", "a|xa|ax"},
         {"'a,b,c'.split(',') ~ 'a,b,c'.split(',', 1)", "['a', 'b', 'c']['a', 'b,c']"},
         {"'a,b,c'.rsplit(',', 1) ~ ' a  b '.split()", "['a,b', 'c']['a', 'b']"},
         {"' a  b c '.split(none, 1) ~ ''.split() ~ ''.split(',')", "['a', 'b c '][]['']"},
         {"'a\\nb\\r\\n'.splitlines() ~ 'a\\nb'.splitlines(true)", "['a', 'b']['a\\n', 'b']"},
         {"'a-b-c'.partition('-') ~ 'a-b-c'.rpartition('-')", "('a', '-', 'b-c')('a-b', '-', 'c')"},
         {"'</think>x'.removeprefix('</think>') ~ 'ab'.removesuffix('b')", "xa"},
         {"'a'.split('')", "error: chat template line 1: empty separator"}});
}

TEST_F(StringMethods, Asking) {
  check({{"['abc'.startswith('a'), 'abc'.endswith(('x', 'c')), 'abc'.startswith('b', 1)]",
          "[True, True, True]"},
         {"[u.find('l'), u.rfind('l'), 'abc'.find('x'), 'aXbX'.count('X'), 'abc'.count('')]",
          "[2, 3, -1, 2, 4]"},
         {"'abc'.index('x')", "error: chat template line 1: substring not found"},
         {"['12'.isdigit(), 'a1'.isalnum(), ''.isalpha(), 'Ab C'.istitle(), 'a'.islower()]",
          "[True, True, False, True, True]"},
         {"'abc'.startswith(['a'])",
          "error: chat template line 1: startswith: expected a string, found 'list'"}});
}

TEST_F(StringMethods, Making) {
  check({{"'-'.join(['a', 'b']) ~ ''.join('xy')", "a-bxy"},
         {"','.join([1])",
          "error: chat template line 1: sequence item 0: expected str instance, int found"},
         {"'aab'.replace('a', 'x', 1) ~ 'ab'.upper() ~ 'AB'.lower()", "xabABab"},
         {"'they\\'re'.title() ~ 'aB'.swapcase() ~ 'ab c'.capitalize()", "They'ReAbAb c"},
         {"'ab'.zfill(4) ~ '|' ~ 'a'.ljust(3, '*') ~ 'a'.rjust(3) ~ 'a'.center(4, '-')",
          "00ab|a**  a-a--"},
         {"'a\\tb'.expandtabs(4)", "a   b"}});
}

TEST_F(StringMethods, Format) {
  check(
      {{"'{} {}'.format(1, 'a') ~ '{0}{1}{0}'.format(1, 2) ~ '{a!r}'.format(a='x')", "1 a121'x'"},
       {"'{:>5}|{:<5}|{:^5}|{:*^5}'.format('a', 'b', 'c', 'd')", "    a|b    |  c  |**d**"},
       {"'{:05d} {:+d} {:,} {:#x}'.format(42, 7, 1234567, 255)", "00042 +7 1,234,567 0xff"},
       {"'{:.2f} {:e} {:g} {:%}'.format(3.14159, 12345.6, 0.0001, 0.5)",
        "3.14 1.234560e+04 0.0001 50.000000%"},
       {"'{0[b]} {{}} {1[0]}'.format(d, l)", "1 {} 1"},
       {"'{:{}}|'.format('a', 3)", "a  |"},
       {"'{}'.format()",
        "error: chat template line 1: replacement index 0 out of range for positional args tuple"},
       {"'%s|%5.1f|%-4d|%04d|%x|%r|%%' % ('a', 2.25, 7, 7, 255, 'q')",
        "a|  2.2|7   |0007|ff|'q'|%"},
       {"'%(x)s' % {'x': 1}", "1"},
       {"'%d' % 'x'", "error: chat template line 1: %d format: a number is required, not str"},
       {"'%s' % (1, 2)",
        "error: chat template line 1: not all arguments converted during string formatting"}});
}

TEST_F(ContainerMethods, ReadOnlyOnes) {
  check({{"[d.get('b'), d.get('x'), d.get('x', 7), d.get('a', 7)]", "[1, None, 7, None]"},
         {"d.keys() | list ~ d.values() | list ~ d.items() | list",
          "['b', 'a'][1, None][('b', 1), ('a', None)]"},
         {"[l.index(2), l.count(1), (1, 2).index(2)]", "[1, 2, 1]"},
         {"d.copy() == d", "True"}});
}

}  // namespace
}  // namespace headrace::test
