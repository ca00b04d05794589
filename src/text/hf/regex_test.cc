#include "text/hf/regex.h"

#include <gtest/gtest.h>

#include "base/os/thread_time.h"
#include "text/hf/encode_fault.h"
#include "text/hf/regex_budget.h"

namespace headrace::text {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.error().to_string();
  std::vector<std::string> found;
  if (!regex.ok()) return found;
  regex->each_match(
      text, [&](size_t begin, size_t end) { found.emplace_back(text.substr(begin, end - begin)); });
  return found;
}

using Texts = std::vector<std::string>;

TEST(Regex, SpeaksTheDialectOfTokenizerFiles) {
  EXPECT_EQ(matches(R"(\h+)", "xyz 0aF g"), (Texts{"0aF"}));
  EXPECT_EQ(matches(R"([\h]+|\H)", "1fg"), (Texts{"1f", "g"}));
  EXPECT_EQ(matches(R"(\w+)", "e\xCC\x81t\xC3\xA9 a_1 \xC2\xBD"),
            (Texts{"e\xCC\x81t\xC3\xA9", "a_1"}));
  EXPECT_EQ(matches(R"(\s)", "a\xC2\x85\xE3\x80\x80\xE2\x80\x8B b"),
            (Texts{"\xC2\x85", "\xE3\x80\x80", " "}));
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Lu}]]+)", "abCDe"), (Texts{"ab", "e"}));
  EXPECT_EQ(matches(R"([a[x-z]]+)", "ayb"), (Texts{"ay"}));
  EXPECT_EQ(matches(R"([^a[x-z]]+)", "aybcx"), (Texts{"bc"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \t\nb"), (Texts{" \t"}));
  EXPECT_EQ(matches(R"(\p{Letter}+|\p{^N})", "ab1-"), (Texts{"ab", "-"}));
  EXPECT_EQ(matches(R"(a{,2})", "aaa"), (Texts{"aa", "a"}));
  EXPECT_EQ(matches(R"(\p{N}{1,2}+)", "12345"), (Texts{"12345"}));
  EXPECT_EQ(matches(R"((?m:a.b))", "a\nb"), (Texts{"a\nb"}));
  EXPECT_EQ(matches(R"(^b$)", "a\nb\nc"), (Texts{"b"}));
  EXPECT_EQ(matches(R"([]a]+)", "x]a"), (Texts{"]a"}));
  EXPECT_EQ(matches("", "ab"), (Texts{"", "", ""}));
  EXPECT_EQ(matches(R"(\p{Han}+)", "a\xE6\xB0\xB4"), (Texts{"\xE6\xB0\xB4"}));
}

TEST(Regex, WhatCannotBeUsedIsNamed) {
  for (const char* pattern : {"(", "[a", "a\\", "\\p{Nope}", "(?<a", "[[[[", "(?:a){2}+"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.error().code, ErrorCode::unsupported);
    EXPECT_NE(regex.error().message.find("the pattern '"), std::string::npos);
  }
  EXPECT_FALSE(Regex::compile(std::string(100000, 'a')).ok());
  EXPECT_FALSE(Regex::compile(std::string(5000, '(') + std::string(5000, ')')).ok());
  EXPECT_FALSE(Regex::compile(std::string(5000, '[') + "a" + std::string(5000, ']')).ok());
}

TEST(Regex, APatternWithoutEndIsAnError) {
  const auto regex = Regex::compile("(?:a+a+)+[bc]").value();
  EXPECT_THROW(regex.each_match(std::string(4000, 'a'), [](size_t, size_t) {}), EncodeFault);
}

// Each place is tried up to the end of the text, which no count of steps notices.
TEST(Regex, TimeGrowsNoFasterThanTexts) {
  const auto regex = Regex::compile("a*b|a*c").value();
  const std::string text(2'000'000, 'a');
  const auto begin = thread_time();
  try {
    const RegexBudget budget(0, std::chrono::milliseconds(100));
    regex.each_match(text, [](size_t, size_t) {});
    ADD_FAILURE() << "came to an end";
  } catch (const EncodeFault& fault) {
    EXPECT_EQ(fault.error.code, ErrorCode::resource_exhausted);
    EXPECT_NE(fault.error.message.find("'a*b|a*c' takes more processor time"), std::string::npos);
  }
  EXPECT_LT(thread_time() - begin, std::chrono::seconds(5));
}

// Longer than what is searched in one go.
TEST(Regex, FindsWhatIsFarAway) {
  const std::string gap = [] {
    std::string out;
    for (int i = 0; i < 3000; ++i) out += "\xC3\xA4 ";
    return out;
  }();
  const std::string text = gap + "12" + gap + "3";
  EXPECT_EQ(matches("[0-9]+", text), (Texts{"12", "3"}));
  EXPECT_EQ(matches("(?<=2)\xC3\xA4", text), (Texts{"\xC3\xA4"}));
  EXPECT_EQ(matches("3$", text), (Texts{"3"}));
}

TEST(Regex, IllFormedTextIsNoReasonToStop) {
  EXPECT_EQ(matches("[a-z]+",
                    "ab\xFF"
                    "cd\xE2\x96"),
            (Texts{"ab", "cd"}));
}

}  // namespace
}  // namespace headrace::text
