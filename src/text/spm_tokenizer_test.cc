// SentencePiece BPE on a vocabulary of a few tokens.
#include "text/spm_tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/detokenizer.h"
#include "text/test_encode.h"

namespace headrace::text {
namespace {

TEST(SpmTokenizer, PutsASpaceBeforeTheText) {
  const auto t = sentencepiece_example().build();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(encode(*t, "aab", kPlain), (Pieces{"▁a", "ab"}));
  EXPECT_EQ(encode(*t, "ab", kPlain), (Pieces{"▁ab"}));  // by way of "▁a", the best score
  EXPECT_EQ(encode(*t, "", kPlain), Pieces{});
  EXPECT_EQ(encode(*t, " a", kPlain), (Pieces{"▁", "▁a"}));
  EXPECT_EQ(encode(*t, "ab", {.add_special = true, .parse_special = false}),
            (Pieces{"<s>", "▁ab"}));
}

TEST(SpmTokenizer, NoSpaceWhereTheFileSaysSo) {
  auto builder = sentencepiece_example();
  builder.set("tokenizer.ggml.add_space_prefix", false);
  const auto t = builder.build();
  EXPECT_EQ(encode(*t, "<s>ab</s>", kParsed), (Pieces{"<s>", "ab", "</s>"}));
  EXPECT_EQ(t->decode(t->encode(" a", kPlain).value(), false), " a");
}

TEST(SpmTokenizer, ASpaceFollowsEverySpecialToken) {
  const auto t = sentencepiece_example().build();
  EXPECT_EQ(encode(*t, "a</s> a", kParsed), (Pieces{"▁a", "</s>", "▁", "▁a"}));
  EXPECT_EQ(encode(*t, "a</s>  a", kParsed), (Pieces{"▁a", "</s>", "▁▁", "▁a"}));
  // One that is not a control token too.
  EXPECT_EQ(encode(*t, "<sep>a", kPlain), (Pieces{"<sep>", "▁a"}));
}

TEST(SpmTokenizer, RunsOfSpacesSurvive) {
  const auto t = sentencepiece_example().build();
  EXPECT_NE(encode(*t, "a     a", kPlain), encode(*t, "a a", kPlain));
  EXPECT_EQ(t->decode(t->encode("a     a", kPlain).value(), true), "a     a");
}

// Characters of every length, ill-formed bytes, and spaces that do not end the word.
TEST(SpmTokenizer, AHugeWordKeepsEveryByte) {
  auto builder = sentencepiece_example();
  builder.token("b▁", TokenKind::normal, -0.6);
  const auto t = builder.build();
  ASSERT_NE(t, nullptr);
  const std::string_view units[] = {"ab", "b ", " ", "éb", "中b", "\U0001F600b", "\360b", "b  "};
  std::mt19937 random(2);
  for (int round = 0; round < 4; ++round) {
    std::string text = "b";
    while (text.size() < 300'000) text += units[random() % std::size(units)];
    const auto ids = t->encode(text, kPlain);
    ASSERT_TRUE(ids.ok());
    EXPECT_TRUE(t->decode(*ids, false) == text) << round;
  }
  std::string text, marked;
  for (int i = 0; i < 50'000; ++i) {
    text += "b ";
    marked += "b▁";
  }
  Pieces expected(50'000, "b▁");
  expected.insert(expected.begin(), "▁");
  EXPECT_EQ(encode(*t, text, kPlain), expected);
  EXPECT_EQ(encode(*t, marked, kPlain), expected);  // U+2581 in the text is a space too
}

TEST(SpmTokenizer, FallsBackToBytes) {
  const auto t = sentencepiece_example().build();
  EXPECT_EQ(encode(*t, "a\xF0\x9F\xA6\x99", kPlain),
            (Pieces{"▁a", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>"}));
  EXPECT_EQ(encode(*t, "\xFF", kPlain), (Pieces{"▁", "<0xFF>"}));
}

TEST(SpmTokenizer, UnknownNeighboursBecomeOneTokenWithoutBytes) {
  VocabularyBuilder builder("llama");
  builder.token("<unk>", TokenKind::unknown);
  builder.token("▁", TokenKind::normal, -1);
  builder.token("a", TokenKind::normal, -2);
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  const auto t = builder.build();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(encode(*t, "aééa\xFF", kPlain), (Pieces{"▁", "a", "<unk>", "a", "<unk>"}));
}

// What a word gives must not depend on what stood before it when it was met first.
TEST(SpmTokenizer, UnknownNeighboursOfTwoWords) {
  VocabularyBuilder builder("llama");
  builder.token("<unk>", TokenKind::unknown);
  builder.token("a", TokenKind::normal, -2);
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.add_space_prefix", false);
  const auto t = builder.build();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(encode(*t, "\u00E9 aa aa\u00E9 aa", kPlain),
            (Pieces{"<unk>", "a", "a", "<unk>", "a", "a", "<unk>", "a", "a"}));
  EXPECT_EQ(encode(*t, "\u00E9 aa aa", kPlain), (Pieces{"<unk>", "a", "a", "<unk>", "a", "a"}));
}

TEST(SpmTokenizer, TheUnknownTokenIsASpecialTokenOfTheText) {
  VocabularyBuilder builder("llama");
  builder.token("<unk>", TokenKind::unknown);
  for (const char* piece : {"a", "<", "u", "n", "k", ">"}) {
    builder.token(piece, TokenKind::normal, -2);
  }
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.add_space_prefix", false);
  const auto t = builder.build();
  ASSERT_NE(t, nullptr);
  const EncodeOptions parsed = {.add_special = false, .parse_special = true};
  EXPECT_EQ(encode(*t, "a<unk><unk>\u00E9a", parsed),
            (Pieces{"a", "<unk>", "<unk>", "<unk>", "a"}));
  EXPECT_EQ(encode(*t, "a<unk>a", kPlain), (Pieces{"a", "<", "u", "n", "k", ">", "a"}));
  EXPECT_EQ(t->decode(t->encode("a<unk>a", parsed).value(), true), "aa");
}

TEST(SpmTokenizer, FirstSpaceIsLeftOutWhenDecodingAfterControlTokensToo) {
  const auto t = sentencepiece_example().build();
  const auto ids = t->encode("ab ab", {.add_special = true, .parse_special = false}).value();
  EXPECT_EQ(t->decode(ids, true), "ab ab");
  EXPECT_EQ(t->decode(ids, false), "<s>ab ab");
}

TEST(SpmTokenizer, FirstSpaceStaysWhereATextGoesOn) {
  const auto t = sentencepiece_example().build();
  const TokenId id = t->encode("ab", kPlain).value().front();
  EXPECT_EQ(Detokenizer(t, true).push(id), "ab");
  EXPECT_EQ(Detokenizer(t, true, true).push(id), " ab");
}

// Words are cut only where no piece could join across: the ids are those of the whole text.
TEST(SpmTokenizer, CuttingAtSpacesChangesNothing) {
  auto builder = sentencepiece_example();
  builder.token("b▁a", TokenKind::normal, -0.5);
  builder.set("tokenizer.ggml.add_space_prefix", false);
  builder.token("b▁", TokenKind::normal, -0.6);
  const auto t = builder.build();
  EXPECT_EQ(encode(*t, "ab a", kPlain), (Pieces{"a", "b▁a"}));
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += " ab"[random() % 3];
    EXPECT_EQ(t->decode(t->encode(text, kPlain).value(), false), text);
  }
}

}  // namespace
}  // namespace headrace::text
