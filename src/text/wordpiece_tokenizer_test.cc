#include "text/wordpiece_tokenizer.h"

#include <gtest/gtest.h>

#include "text/test_encode.h"

namespace headrace::text {
namespace {

VocabularyBuilder wordpiece_example() {
  VocabularyBuilder builder("bert");
  builder.token("[UNK]", TokenKind::control);
  builder.token("[CLS]", TokenKind::control);
  builder.token("[SEP]", TokenKind::control);
  for (const char* piece :
       {"▁hello", "▁he", "llo", "ly", "▁!", "▁'", "▁é", "▁e", "t", "▁中", "▁a"}) {
    builder.token(piece);
  }
  builder.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  builder.set("tokenizer.ggml.cls_token_id", uint64_t{1});
  builder.set("tokenizer.ggml.seperator_token_id", uint64_t{2});
  return builder;
}

TEST(WordpieceTokenizer, CutsWordsIntoTheLongestPieces) {
  const auto t = wordpiece_example().build();
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(encode(*t, "Hello hely!"), (Pieces{"▁hello", "▁he", "ly", "▁!"}));
  EXPECT_EQ(encode(*t, "  hello\t\n'HELLO"), (Pieces{"▁hello", "▁'", "▁hello"}));
  EXPECT_EQ(encode(*t, ""), Pieces{});
  EXPECT_EQ(encode(*t, " \n"), Pieces{});
}

TEST(WordpieceTokenizer, AWordWithoutPiecesIsUnknownAsAWhole) {
  const auto t = wordpiece_example().build();
  EXPECT_EQ(encode(*t, "hex hello"), (Pieces{"[UNK]", "▁hello"}));
  EXPECT_EQ(encode(*t, "he" + std::string(200, 't')), Pieces{"[UNK]"});
  EXPECT_EQ(encode(*t, "a" + std::string(99, 't')).size(), 100U);
  EXPECT_EQ(encode(*t, "a" + std::string(100, 't')), Pieces{"[UNK]"});
}

TEST(WordpieceTokenizer, StripsAccentsSplitsIdeographsDropsControls) {
  const auto t = wordpiece_example().build();
  EXPECT_EQ(encode(*t, "\u00C9t\u0301"), (Pieces{"▁e", "t"}));
  EXPECT_EQ(encode(*t, "he中he"), (Pieces{"▁he", "▁中", "▁he"}));
  EXPECT_EQ(encode(*t, std::string_view("he\0llo\x01\xFF", 7)), (Pieces{"▁hello"}));
}

TEST(WordpieceTokenizer, KeepsCaseAndAccentsWhereTheVocabularyHasCapitals) {
  auto builder = wordpiece_example();
  builder.token("▁Hello");
  const auto t = builder.build();
  EXPECT_EQ(encode(*t, "Hello hello é"), (Pieces{"▁Hello", "▁hello", "▁é"}));
}

TEST(WordpieceTokenizer, AddsClsAndSep) {
  const auto t = wordpiece_example().build();
  EXPECT_EQ(encode(*t, "hello", {.add_special = true, .parse_special = false}),
            (Pieces{"[CLS]", "▁hello", "[SEP]"}));
  EXPECT_EQ(t->decode(t->encode("hello hely", {}).value(), true), "hello hely");
}

TEST(WordpieceTokenizer, RefusesAVocabularyWithoutWordBeginnings) {
  VocabularyBuilder builder("bert");
  builder.token("hello");
  const auto made = make_tokenizer(builder.metadata(), {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::corrupt_data);
}

}  // namespace
}  // namespace headrace::text
