#include "text/pretokenize.h"

#include <gtest/gtest.h>

#include <random>

namespace headrace::text {
namespace {

using Words = std::vector<std::string>;

Words words(std::string_view name, std::string_view text) {
  const auto pre = find_pre_tokenizer(name);
  EXPECT_TRUE(pre.ok());
  Words out;
  pretokenize(pre->rules, text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

TEST(Pretokenize, Gpt2) {
  EXPECT_EQ(words("gpt-2", "I'm 'S  it's\n\nok 12345, x!?\t\ty "),
            (Words{"I", "'m", " '", "S", " ", " it", "'s", "\n", "\n", "ok", " 12345", ",", " x",
                   "!?", "\t", "\t", "y", " "}));
  EXPECT_EQ(words("gpt-2", "a\u00A0b \u3000 \u4E2D"),
            (Words{"a", "\u00A0", "b", " \u3000", " \u4E2D"}));
  EXPECT_EQ(words("gpt-2", "   "), (Words{"   "}));
  EXPECT_EQ(words("gpt-2", ""), Words{});
}

TEST(Pretokenize, DigitsOneByOneComeFirst) {
  // What is before a digit ends there: the spaces are not split from each other.
  EXPECT_EQ(words("smollm", "a  12 b\u0663c ½"),
            (Words{"a", "  ", "1", "2", " b", "\u0663", "c", " ", "½"}));
  EXPECT_EQ(words("smollm", "x\n 7"), (Words{"x", "\n ", "7"}));
}

TEST(Pretokenize, Llama3AndQwen2) {
  EXPECT_EQ(words("llama-bpe", "It'S (now) 12345 \n\n  x--\r\ny'D"),
            (Words{"It", "'S", " (", "now", ")", " ", "123", "45", " \n\n", " ", " x", "--\r\n",
                   "y", "'D"}));
  EXPECT_EQ(words("qwen2", "a 123"), (Words{"a", " ", "1", "2", "3"}));
  EXPECT_EQ(words("qwen2", "\n \n x"), (Words{"\n \n", " x"}));
}

TEST(Pretokenize, Deepseek) {
  // The pattern for punctuation has the range from ":" to "~", letters included: it cuts words
  // that mix ASCII and accented letters.
  EXPECT_EQ(words("deepseek-llm", "Hi there, 12\n\u00E9t\u00E9 \u4E2D\u6587  "),
            (Words{"Hi", " there", ",", " ", "12", "\n", "\u00E9", "t", "\u00E9", " ",
                   "\u4E2D\u6587", "  "}));
  EXPECT_EQ(words("deepseek-coder", "f(x) 12"), (Words{"f", "(", "x", ")", " ", "1", "2"}));
  EXPECT_EQ(words("deepseek-v3", "a 1234 \u4E2D.abc$x\n\n z"),
            (Words{"a", " ", "123", "4", " ", "\u4E2D", ".abc", "$x", "\n\n", " z"}));
}

TEST(Pretokenize, CaseChangesSplitTekkenAndGpt4o) {
  EXPECT_EQ(words("tekken", "HelloWorld HTTPServer 12 ABC"),
            (Words{"Hello", "World", " HTTPServer", " ", "1", "2", " ABC"}));
  EXPECT_EQ(words("gpt-4o", "It'S John's 1234 \u4E2DA"),
            (Words{"It'S", " John's", " ", "123", "4", " \u4E2D", "A"}));
}

TEST(Pretokenize, FalconAndDefaultCutPunctuationFirst) {
  EXPECT_EQ(words("falcon", "a, b 1234`"), (Words{"a", ",", " b", " ", "123", "4", "`"}));
  EXPECT_EQ(words("default", "a <b> 1234"), (Words{"a", " ", "<", "b", ">", " ", "123", "4"}));
}

TEST(Pretokenize, AnUnknownNameIsAnErrorThatTellsTheWayOut) {
  const auto found = find_pre_tokenizer("my-pre");
  ASSERT_FALSE(found.ok());
  const std::string message = found.error().to_string();
  for (const char* part : {"my-pre", "smollm", "qwen2", "--pre-tokenizer"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(Pretokenize, NamesAreSortedAndDistinct) {
  const auto names = known_pre_tokenizers();
  for (size_t i = 1; i < names.size(); ++i) EXPECT_LT(names[i - 1].name, names[i].name);
}

// Random text of characters that the rules treat differently, ill-formed bytes among them.
TEST(Pretokenize, WordsJoinToTheTextWhateverItIs) {
  const std::string_view parts[] = {"a",      "B",
                                    "'",      "s",
                                    "ll",     " ",
                                    "  ",     "\n",
                                    "\r",     "\t",
                                    "1",      "\u0663",
                                    "\u4E2D", "\u3042",
                                    ".",      "$",
                                    "_",      "\xF0",
                                    "\x9F",   "\xC3\xA9",
                                    "\u0301", "/",
                                    "\u3000", "\xF0\x9F\x98\x80",
                                    "\u01C5", std::string_view("\0", 1)};
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += parts[random() % std::size(parts)];
    for (const PreTokenizerName& pre : known_pre_tokenizers()) {
      std::string joined;
      pretokenize(pre.rules, text, [&](std::string_view word) {
        EXPECT_FALSE(word.empty());
        joined += word;
      });
      ASSERT_EQ(joined, text) << pre.name;
    }
  }
}

}  // namespace
}  // namespace headrace::text
