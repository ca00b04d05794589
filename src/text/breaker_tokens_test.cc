#include "text/breaker_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "text/test_vocabulary.h"

namespace headrace::text {
namespace {

using Texts = std::vector<std::string>;

TEST(BreakerTokens, AreThoseWhoseTextHasOneInIt) {
  const std::shared_ptr<const Tokenizer> tokenizer = byte_level_example().build();
  const BreakerFinder finder(tokenizer);
  for (const Texts& texts : {Texts{"l"}, Texts{"l", "he"}, Texts{" "}, default_breakers()}) {
    std::vector<TokenId> expected;
    for (TokenId id = 0; id < tokenizer->vocab_size(); ++id) {
      const std::string bytes = tokenizer->bytes(id);
      const auto has = [&](const std::string& text) { return bytes.find(text) != bytes.npos; };
      if (std::any_of(texts.begin(), texts.end(), has)) expected.push_back(id);
    }
    EXPECT_FALSE(expected.empty());
    for (int again = 0; again < 2; ++again) {
      const BreakerTokens found = finder.find(texts);
      EXPECT_EQ(*found.ids, expected);
      EXPECT_TRUE(found.unknown.empty());
    }
  }
}

TEST(BreakerTokens, OfNoTextsThereAreNone) {
  EXPECT_TRUE(BreakerFinder(byte_level_example().build()).find({}).ids->empty());
}

TEST(BreakerTokens, TellsWhatNoTokenHas) {
  const auto found =
      BreakerFinder(byte_level_example().build()).find({"no such token", "l", "nor this"});
  EXPECT_EQ(found.unknown, (Texts{"no such token", "nor this"}));
  EXPECT_FALSE(found.ids->empty());
}

TEST(BreakerTokens, ListsThatAreForgottenAreFoundAgain) {
  const BreakerFinder finder(byte_level_example().build());
  const auto first = *finder.find({"l"}).ids;
  for (char c = 'a'; c <= 'z'; ++c) finder.find({std::string(1, c)});
  EXPECT_EQ(*finder.find({"l"}).ids, first);
}

TEST(BreakerTokens, ListsAreBounded) {
  EXPECT_TRUE(check_breakers({}).ok());
  EXPECT_TRUE(check_breakers(Texts(kMaxBreakers, std::string(kMaxBreakerBytes, 'a'))).ok());
  EXPECT_FALSE(check_breakers(Texts(kMaxBreakers + 1, "a")).ok());
  EXPECT_FALSE(check_breakers(Texts{""}).ok());
  EXPECT_FALSE(check_breakers(Texts{std::string(kMaxBreakerBytes + 1, 'a')}).ok());
}

}  // namespace
}  // namespace headrace::text
