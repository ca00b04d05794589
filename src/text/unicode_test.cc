#include "text/unicode.h"

#include <gtest/gtest.h>

namespace headrace::text {
namespace {

TEST(Unicode, ReplacesMaximalSubparts) {
  // The Unicode Standard, section 3.9, tables 3-8 to 3-11, and a cut at the end.
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            bad + bad + bad + bad + bad + bad + bad + bad + "A");
  EXPECT_EQ(replace_invalid("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            bad + bad + bad + bad + bad + bad + bad + bad + "A");
  EXPECT_EQ(replace_invalid("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            bad + bad + bad + bad + bad + "A" + bad + bad + "B");
  EXPECT_EQ(replace_invalid("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), bad + bad + bad + bad + "A");
  EXPECT_EQ(replace_invalid("ok\xF0\x9F\x98"), "ok" + bad);
  EXPECT_EQ(replace_invalid("\xF0\x9F\x98\x8A"), "\xF0\x9F\x98\x8A");
}

TEST(Unicode, IncompleteTailIsWhatMoreBytesCouldComplete) {
  EXPECT_EQ(incomplete_tail(""), 0U);
  EXPECT_EQ(incomplete_tail("abc"), 0U);
  EXPECT_EQ(incomplete_tail("a\xF0\x9F\x98"), 3U);
  EXPECT_EQ(incomplete_tail("a\xF0"), 1U);
  EXPECT_EQ(incomplete_tail("a\xE2\x82"), 2U);
  EXPECT_EQ(incomplete_tail("\xF0\x9F\x98\x8A"), 0U);
  EXPECT_EQ(incomplete_tail("\xE0\x80"), 0U);  // contradicted already
  EXPECT_EQ(incomplete_tail("\x80\x80\x80"), 0U);
  EXPECT_EQ(incomplete_tail("\xFF"), 0U);
}

TEST(Unicode, Classes) {
  const CharTable& table = CharTable::get();
  EXPECT_EQ(table.of('a'), kLetter | kLower);
  EXPECT_EQ(table.of(0x01C5), kLetter | kUpper);  // titlecase
  EXPECT_EQ(table.of(0x4E2D), kLetter);
  EXPECT_EQ(table.of(0xBD), kNumber);  // one half
  EXPECT_EQ(table.of(0x2160), kNumber);
  EXPECT_EQ(table.of(0x0301), kMark);
  EXPECT_EQ(table.of(0x85), kSpace);
  EXPECT_EQ(table.of(0x3000), kSpace);
  EXPECT_EQ(table.of(0x200B), 0);
  EXPECT_EQ(table.of(0x1F600), kSymbol);
  EXPECT_EQ(table.of(0x20001), kLetter);
  EXPECT_EQ(table.of(0xE0100), kMark);
  EXPECT_EQ(table.of(0x10FFFF), 0);
  EXPECT_EQ(table.of(0x110000), 0);
}

TEST(Unicode, EncodesWhatItDecodes) {
  for (const char32_t code :
       {0x41U, 0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    std::string text;
    append_utf8(text, code);
    const Decoded c = decode_utf8(text.data(), text.data() + text.size());
    EXPECT_TRUE(c.valid);
    EXPECT_EQ(c.code, code);
    EXPECT_EQ(c.size, text.size());
  }
}

TEST(Unicode, FormC) {
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("\u212B"), "\u00C5");
  EXPECT_EQ(to_nfc("a\xFF"
                   "e\u0301"),
            "a\xFF\u00E9");
  EXPECT_TRUE(surely_nfc("plain \u00E9 \u4E2D \u3042 \U0001F600 \uAC00 \xFF"));
  for (const char* text : {"e\u0301", "\u212B", "\u1100\u1161", "\u0958", "\u0BC6\u0BBE"}) {
    EXPECT_FALSE(surely_nfc(text)) << text;
  }
}

}  // namespace
}  // namespace headrace::text
