// For the tests of this folder: lists of templates, or of expressions, and what they give.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "text/chat_template/test_render.h"

namespace headrace::test {

struct TemplateCase {
  const char* source;
  std::string output;
};

/// A suite whose cases share their variables and the way they run: eval, render or marked.
class CaseTest : public ::testing::Test {
 protected:
  using Run = std::string (*)(std::string_view source, const Json& variables);

  CaseTest(Run run, const char* variables) : run_(run), variables_(Json::parse(variables)) {}

  void check(std::initializer_list<TemplateCase> cases) const {
    for (const auto& c : cases) EXPECT_EQ(run_(c.source, variables_), c.output) << c.source;
  }

  const Run run_;
  const Json variables_;
};

}  // namespace headrace::test
