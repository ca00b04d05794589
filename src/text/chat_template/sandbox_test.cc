// No way out: Python's internals and everything that changes a value are closed.
#include <gtest/gtest.h>

#include "text/chat_template/test_render.h"

namespace headrace::test {
namespace {

const Json kSandboxVariables = Json::parse(R"({"l":[1],"d":{"a":1},"s":"x"})");

TEST(Sandbox, InternalsAreUndefinedAndUnusable) {
  for (const char* expression :
       {"s.__class__", "s['__class__']", "().__class__", "d.__init__",
        "raise_exception.__globals__", "s | attr('__class__')", "namespace().__dict__",
        "[s] | map(attribute='__class__') | first"}) {
    EXPECT_EQ(eval(expression, kSandboxVariables), "") << expression;
    const std::string used = eval(std::string("(") + expression + ").mro", kSandboxVariables);
    EXPECT_NE(used.find("is unsafe"), std::string::npos) << expression << ": " << used;
  }
  EXPECT_EQ(eval("'{0.__class__}'.format(s)", kSandboxVariables), "");
  for (const char* name : {"os", "eval", "open", "import", "self", "lipsum", "caller"}) {
    EXPECT_EQ(eval(std::string(name) + " is defined", kSandboxVariables), "False") << name;
  }
}

TEST(Sandbox, NothingChangesAValue) {
  for (const char* call : {"l.append(2)", "l.pop()", "l.clear()", "l.sort()", "l.extend([1])",
                           "l.insert(0, 1)", "l.remove(1)", "l.reverse()", "d.pop('a')",
                           "d.update({})", "d.clear()", "d.popitem()", "d.setdefault('b', 1)"}) {
    const std::string result = eval(call, kSandboxVariables);
    EXPECT_EQ(result.find("error:"), 0U) << call << ": " << result;
    EXPECT_NE(result.find("is unsafe"), std::string::npos) << call << ": " << result;
  }
  EXPECT_EQ(eval("l.append", kSandboxVariables), "");
}

TEST(Sandbox, VariablesOfOneRenderingDoNotReachTheNext) {
  const auto parsed = ChatTemplate::parse(
      "{{ x is defined }}{% set x = 1 %}{% set y = l %}{{ cycler(1, 2).next() }}");
  ASSERT_TRUE(parsed.ok());
  for (int i = 0; i < 2; ++i) {
    const auto out = parsed->render(make_input(), Json::array(), Json(), Json(), kSandboxVariables);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(joined(*out), "False1");
  }
}

}  // namespace
}  // namespace headrace::test
