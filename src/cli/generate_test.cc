// A generation's text: whether it begins a text or goes on with one.
#include "cli/generate.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "engine/simulation/checksum_engine.h"
#include "text/test_vocabulary.h"

namespace headrace::cli {
namespace {

/// A SentencePiece vocabulary, whose texts begin with a space that nobody wrote.
std::shared_ptr<const Tokenizer> words() {
  text::VocabularyBuilder builder("llama");
  builder.token("<unk>", TokenKind::unknown);
  for (const char* word : {"▁one", "▁two", "three", "▁", "e", "▁é"}) builder.token(word);
  return builder.build();
}

class GenerateText : public testing::Test {
 protected:
  GenerateText() {
    ChecksumEngineOptions options;
    options.vocab_size = tokenizer_->vocab_size();
    options.engine.context = 100;
    engine_ = std::move(make_checksum_engine(options).value().engine);
  }

  Generation run(uint64_t seed, bool goes_on) {
    Request request;
    request.prompt = prompt_;
    request.sampling.seed = seed;
    request.stop.max_tokens = 6;
    std::string shown;
    auto done = generate(*engine_, tokenizer_, request, goes_on, [&](std::string_view piece) {
      shown += piece;
      return true;
    });
    EXPECT_TRUE(done.ok());
    EXPECT_EQ(shown, done->text);
    return std::move(done).value();
  }

  const std::shared_ptr<const Tokenizer> tokenizer_ = words();
  const std::vector<TokenId> prompt_{1, 3};
  std::unique_ptr<Engine> engine_;
};

TEST_F(GenerateText, GoesOnExactlyWhereThePromptEnds) {
  std::set<char> beginnings;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Generation done = run(seed, true);
    std::vector<TokenId> all = prompt_;
    all.insert(all.end(), done.ids.begin(), done.ids.end());
    EXPECT_EQ(tokenizer_->decode(prompt_, true) + done.text, tokenizer_->decode(all, true));
    beginnings.insert(done.text.front());
  }
  EXPECT_TRUE(beginnings.contains(' '));
  EXPECT_GT(beginnings.size(), 1U);
}

TEST_F(GenerateText, OfItsOwnHasNoSpaceBeforeIt) {
  int num_begun_with_space = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Generation done = run(seed, false);
    EXPECT_EQ(done.text, tokenizer_->decode(done.ids, true));
    num_begun_with_space += run(seed, true).text == " " + done.text ? 1 : 0;
  }
  EXPECT_GT(num_begun_with_space, 0);
}

}  // namespace
}  // namespace headrace::cli
