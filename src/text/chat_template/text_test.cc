#include "text/chat_template/text.h"

#include <gtest/gtest.h>

#include <random>

#include "text/chat_template/text_ops.h"
#include "text/chat_template/unicode.h"

namespace headrace::jinja {
namespace {

/// One letter a byte: 't' or 'u'.
std::string trust_of(const Text& text) {
  std::string out;
  text.for_each_run(0, text.size(), [&](size_t begin, size_t end, bool trusted) {
    out.append(end - begin, trusted ? 't' : 'u');
  });
  return out;
}

Text mixed(std::initializer_list<std::pair<const char*, bool>> parts) {
  Text text;
  for (const auto& [bytes, trusted] : parts) text.append(bytes, trusted);
  return text;
}

TEST(Text, RunsMergeAndSplit) {
  const Text text = mixed({{"ab", true}, {"c", true}, {"de", false}, {"", true}, {"f", false}});
  EXPECT_EQ(text.bytes(), "abcdef");
  EXPECT_EQ(trust_of(text), "tttuuu");
  EXPECT_EQ(trust_of(text.slice(2, 5)), "tuu");
  EXPECT_TRUE(text.trusted(0, 3));
  EXPECT_FALSE(text.trusted(2, 4));
  EXPECT_TRUE(text.trusted(4, 4));
  EXPECT_FALSE(text.all_trusted());
  EXPECT_TRUE(Text("x", true).all_trusted());
  EXPECT_FALSE(Text("x", false).all_trusted());
  EXPECT_TRUE(Text().all_trusted());
}

TEST(Text, SlicesAndJoinsKeepEveryBytesTrust) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Text text;
    std::string bytes, trust;
    for (int i = 0; i < 12; ++i) {
      if (random() % 3 == 0 && !text.empty()) {
        const size_t from = random() % text.size(), to = from + random() % (text.size() - from + 1);
        const Text part = text.slice(from, to);
        ASSERT_EQ(part.bytes(), bytes.substr(from, to - from));
        ASSERT_EQ(trust_of(part), trust.substr(from, to - from));
        text.append(part);
        bytes += part.bytes();
        trust += trust_of(part);
      } else {
        const std::string piece(random() % 4, static_cast<char>('a' + i));
        const bool trusted = random() % 2 == 0;
        text.append(piece, trusted);
        bytes += piece;
        trust.append(piece.size(), trusted ? 't' : 'u');
      }
      ASSERT_EQ(text.bytes(), bytes);
      ASSERT_EQ(trust_of(text), trust);
    }
  }
}

TEST(Text, BuilderStopsAtItsLimit) {
  Budget budget(1'000'000, 10, 16);
  TextBuilder builder(budget);
  builder.append("123456789", true);
  EXPECT_THROW(builder.append("ab", true), Fault);
  EXPECT_THROW(builder.pad(' ', int64_t{1} << 62, true), Fault);
  EXPECT_THROW(builder.repeat(Text("ab", true), int64_t{1} << 62), Fault);
  EXPECT_EQ(builder.text().bytes(), "123456789");
}

TEST(TextOps, ReplaceKeepsTheTrustOfEachPart) {
  Budget budget(1'000'000, 1000, 16);
  const Text text = mixed({{"a-", true}, {"b-", false}, {"c", true}});
  const Text out = replace_text(budget, text, Text("-", true), Text("<>", true), -1);
  EXPECT_EQ(out.bytes(), "a<>b<>c");
  EXPECT_EQ(trust_of(out), "tttuttt");
}

TEST(TextOps, CaseMappingOfASplitCharacterIsUntrusted) {
  Budget budget(1'000'000, 1000, 16);
  const Text text = mixed({{"\xC3", false}, {"\xA9x", true}});  // e with acute, cut in two
  const Text out = upper_text(budget, text);
  EXPECT_EQ(out.bytes(), "\xC3\x89X");
  EXPECT_EQ(trust_of(out), "uut");
}

TEST(Unicode, CodePoints) {
  EXPECT_EQ(count_code_points("h\xC3\xA9\xE2\x98\x83\xF0\x9F\x98\x80"), 4U);
  EXPECT_EQ(count_code_points("\xFF\xC3"), 2U);  // invalid bytes count one by one
  EXPECT_EQ(byte_offset("h\xC3\xA9x", 2), 3U);
  EXPECT_EQ(byte_offset("ab", 5), 2U);
  EXPECT_EQ(previous_start("a\xC3\xA9", 3), 1U);
  EXPECT_EQ(previous_start("a\x80\x80", 3), 2U);
  EXPECT_TRUE(is_space(0x3000) && is_space(0x1F) && !is_space(0x200B));
}

}  // namespace
}  // namespace headrace::jinja
