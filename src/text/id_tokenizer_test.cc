// Tokenizers that know ids alone; see make_id_tokenizer.
#include <gtest/gtest.h>

#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace headrace {
namespace {

using Ids = std::vector<TokenId>;

TEST(IdTokenizer, SpellsIdsAndReadsNoText) {
  const auto t = make_id_tokenizer(20, {.bos = 1, .eos = 2, .end_of_generation = {3, 99}}).value();
  EXPECT_EQ(t->vocab_size(), 20);
  EXPECT_EQ(t->special().bos, 1);
  EXPECT_EQ(t->special().end_of_generation, (Ids{2, 3}));
  EXPECT_EQ(t->decode(Ids{17, 3, 1, 40, -5}, false), "[17][3][1]");
  EXPECT_EQ(t->decode(Ids{17, 3, 1}, true), "[17]");
  EXPECT_EQ(t->kind(2), TokenKind::control);
  EXPECT_EQ(t->kind(4), TokenKind::normal);
  EXPECT_EQ(t->find("[17]"), 17);
  for (const char* other : {"[20]", "[017]", "17", "[]", "[-1]", "", "[17"}) {
    EXPECT_EQ(t->find(other), std::nullopt) << other;
  }
  EXPECT_EQ(t->encode("", {}).value(), Ids{});
  const auto refused = t->encode("hello", {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::not_found);
  const std::vector<TextSegment> segments = {{"", true}, {"hi", false}};
  EXPECT_FALSE(t->encode(segments, true).ok());
  Detokenizer stream(t, true);
  EXPECT_EQ(stream.push(5) + stream.push(2) + stream.push(6) + stream.finish(), "[5][6]");
}

TEST(IdTokenizer, IsComparedByNumberAndSpecialIds) {
  const auto a = make_id_tokenizer(20, {.bos = 1, .eos = 2, .end_of_generation = {}}).value();
  const auto b = make_id_tokenizer(20, {.bos = 1, .eos = 2, .end_of_generation = {2}}).value();
  const auto c = make_id_tokenizer(21, {.bos = 1, .eos = 2, .end_of_generation = {}}).value();
  EXPECT_TRUE(check_same_tokenizer(*a, "model", *b, "draft").ok());
  EXPECT_FALSE(check_same_tokenizer(*a, "model", *c, "draft").ok());
}

TEST(IdTokenizer, RefusesImpossibleSizes) {
  for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_FALSE(make_id_tokenizer(size, {}).ok()) << size;
  }
}

}  // namespace
}  // namespace headrace
