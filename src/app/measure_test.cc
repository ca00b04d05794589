#include "app/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "app/kl_base.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLetters = 32;

/// One token a letter: id = letter - 'a'.
class LetterTokenizer final : public Tokenizer {
 public:
  explicit LetterTokenizer(bool add_bos, std::string digest = "letters") {
    special_.bos = 31;
    special_.add_bos = add_bos;
    fingerprint_.digest = std::move(digest);
  }
  std::string description() const override { return "letters"; }
  int64_t vocab_size() const override { return kLetters; }
  const SpecialTokens& special() const override { return special_; }
  TokenKind kind(TokenId) const override { return TokenKind::normal; }
  std::string_view piece(TokenId) const override { return "x"; }
  std::string bytes(TokenId id) const override { return {static_cast<char>('a' + id)}; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      const EncodeOptions& options) const override {
    EXPECT_FALSE(options.add_special);
    EXPECT_FALSE(options.parse_special);
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(c - 'a');
    return ids;
  }
  Result<std::vector<TokenId>> encode(std::span<const TextSegment>, bool) const override {
    return std::vector<TokenId>{};
  }
  std::string decode(std::span<const TokenId>, bool) const override { return ""; }
  const TokenizerFingerprint& fingerprint() const override { return fingerprint_; }

 private:
  SpecialTokens special_;
  TokenizerFingerprint fingerprint_;
};

/// The logits after token t: `gain` for t + 1, 0 for all others.
class SuccessorSession final : public Session {
 public:
  explicit SuccessorSession(float gain) : gain_(gain) {}
  Result<void> feed(std::span<const TokenId> tokens, LogitsFor wanted,
                    FunctionRef<void(int64_t, std::span<const float>)> on_logits) override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool last = i + 1 == tokens.size();
      if (wanted == LogitsFor::all || (wanted == LogitsFor::last && last)) {
        std::vector<float> logits(kLetters, 0.0F);
        logits[static_cast<size_t>((tokens[i] + 1) % kLetters)] = gain_;
        on_logits(num_tokens_, logits);
      }
      ++num_tokens_;
    }
    longest_ = std::max(longest_, num_tokens_);
    return {};
  }
  void reset() override { num_tokens_ = 0; }
  int64_t num_tokens() const override { return num_tokens_; }
  int64_t longest() const { return longest_; }

 private:
  float gain_;
  int64_t num_tokens_ = 0;
  int64_t longest_ = 0;
};

double hit_nll(float gain) {
  return std::log(std::exp(gain) + kLetters - 1) - gain;
}
double miss_nll(float gain) {
  return std::log(std::exp(gain) + kLetters - 1);
}

TEST(Score, EveryTokenAfterTheFirst) {
  SuccessorSession session(3.0F);
  const std::vector<TokenId> ids{4, 5, 9};
  const auto scores = score_tokens(session, ids, 2);
  ASSERT_TRUE(scores.ok());
  ASSERT_EQ(scores->nll.size(), 2U);
  EXPECT_NEAR(scores->nll[0], hit_nll(3.0F), 1e-6);
  EXPECT_NEAR(scores->nll[1], miss_nll(3.0F), 1e-6);
  ASSERT_EQ(scores->top.size(), 3U);
  EXPECT_EQ(scores->top[2][0].id, 10);
  EXPECT_EQ(scores->top[2][1].id, 0);
  EXPECT_NEAR(scores->top[2][0].logprob, -hit_nll(3.0F), 1e-6);
}

TEST(Score, NothingToScoreAndNaN) {
  SuccessorSession session(3.0F);
  EXPECT_EQ(score_tokens(session, {}, 0).error().code, ErrorCode::invalid_argument);
  SuccessorSession broken(std::numeric_limits<float>::quiet_NaN());
  const std::vector<TokenId> ids{1, 2};
  const auto scores = score_tokens(broken, ids, 0);
  ASSERT_FALSE(scores.ok());
  EXPECT_EQ(scores.error().where, "position 0");
}

TEST(CutChunks, DropsTheIncompleteTail) {
  const auto chunks = cut_chunks(LetterTokenizer(false), "abcdefghij", 4, 0);
  ASSERT_TRUE(chunks.ok());
  EXPECT_EQ(*chunks, (std::vector<TokenId>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(cut_chunks(LetterTokenizer(false), "abcdefghij", 4, 1)->size(), 4U);
}

TEST(CutChunks, BosTakesThePlaceOfATextToken) {
  const auto chunks = cut_chunks(LetterTokenizer(true), "abcdefg", 4, 0);
  ASSERT_TRUE(chunks.ok());
  EXPECT_EQ(*chunks, (std::vector<TokenId>{31, 0, 1, 2, 31, 3, 4, 5}));
}

TEST(CutChunks, TooShortNamesBothNumbers) {
  const auto chunks = cut_chunks(LetterTokenizer(false), "abc", 8, 0);
  ASSERT_FALSE(chunks.ok());
  EXPECT_EQ(chunks.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(chunks.error().message.find('3'), std::string::npos);
  EXPECT_NE(chunks.error().message.find('8'), std::string::npos);
}

TEST(Perplexity, ScoresTheSecondHalfOfEachChunk) {
  SuccessorSession session(2.0F);
  PerplexityOptions options;
  options.chunk_tokens = 8;
  // Positions 4, 5, 6 predict 5, 6, 7: hits in the first chunk; the second breaks off after 4.
  const std::string text = std::string("abcdefgh") + "abcdezzz";
  const auto result = measure_perplexity(session, LetterTokenizer(false), kLetters, text, options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->chunks, 2);
  EXPECT_EQ(result->scored_tokens, 6);
  EXPECT_NEAR(result->per_chunk_nll[0], hit_nll(2.0F), 1e-6);
  EXPECT_NEAR(result->per_chunk_nll[1], miss_nll(2.0F), 1e-6);
  EXPECT_NEAR(result->mean_nll, (hit_nll(2.0F) + miss_nll(2.0F)) / 2, 1e-6);
  EXPECT_FALSE(result->mean_kl.has_value());
  EXPECT_EQ(session.longest(), 7);  // the last token predicts nothing that is scored
}

TEST(Perplexity, OddChunksAndCancelling) {
  SuccessorSession session(2.0F);
  PerplexityOptions options;
  options.chunk_tokens = 7;
  EXPECT_EQ(measure_perplexity(session, LetterTokenizer(false), kLetters, "abcdefghijkl", options)
                .error()
                .code,
            ErrorCode::invalid_argument);
  options.chunk_tokens = 4;
  options.progress = [](int64_t done, int64_t, double) { return done < 2; };
  EXPECT_EQ(measure_perplexity(session, LetterTokenizer(false), kLetters, "abcdefghijkl", options)
                .error()
                .code,
            ErrorCode::cancelled);
}

class WithBase : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "headrace_measure_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    base_ = (folder_ / "base").string();
    PerplexityOptions options;
    options.chunk_tokens = 8;
    options.save_base = base_;
    SuccessorSession session(2.0F);
    const auto saved =
        measure_perplexity(session, LetterTokenizer(false), kLetters, text_, options);
    ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<Perplexity> compare(float gain, const Tokenizer& tokenizer, const std::string& text,
                             int64_t chunks = 0) {
    PerplexityOptions options;
    options.chunk_tokens = 8;
    options.max_chunks = chunks;
    options.kl_base = base_;
    SuccessorSession session(gain);
    return measure_perplexity(session, tokenizer, kLetters, text, options);
  }

  fs::path folder_;
  std::string base_;
  std::string text_ = "abcdefghijklmnop";
};

TEST_F(WithBase, TheSamePathDivergesByNothing) {
  const auto same = compare(2.0F, LetterTokenizer(false), text_);
  ASSERT_TRUE(same.ok()) << same.error().to_string();
  EXPECT_NEAR(*same->mean_kl, 0, 1e-6);
  EXPECT_EQ(*same->top1_agreement, 1.0);
}

TEST_F(WithBase, AnotherPathDivergesByTheFormula) {
  const auto other = compare(-1.0F, LetterTokenizer(false), text_);
  ASSERT_TRUE(other.ok());
  const double hit = std::exp(-hit_nll(2.0F));
  const double rest = (1 - hit) / (kLetters - 1);
  const double expected =
      hit * (hit_nll(-1.0F) - hit_nll(2.0F)) + (1 - hit) * (std::log(rest) + miss_nll(-1.0F));
  EXPECT_NEAR(*other->mean_kl, expected, 1e-4);
  EXPECT_EQ(*other->top1_agreement, 0.0);
}

TEST_F(WithBase, FewerChunksAreFineMoreAreNot) {
  EXPECT_EQ(compare(2.0F, LetterTokenizer(false), text_, 1)->chunks, 1);
  const auto more = compare(2.0F, LetterTokenizer(false), text_ + text_, 3);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::mismatch);
  // Not asked for: as many as the base has.
  EXPECT_EQ(compare(2.0F, LetterTokenizer(false), text_ + text_)->chunks, 2);
}

TEST_F(WithBase, AnotherNumberOfScoredRowsIsRefused) {
  const std::vector<TokenId> ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (const int64_t rows : {2, 4}) {
    const KlBaseHeader header{kLetters, 2, 8, rows, "letters"};
    auto writer = KlBaseWriter::create(base_, header, ids);
    ASSERT_TRUE(writer.ok()) << writer.error().to_string();
    const std::vector<float> logits(kLetters, 0.0F);
    for (int64_t i = 0; i < 2 * rows; ++i) {
      ASSERT_TRUE(writer->add_row(logits, std::log(static_cast<double>(kLetters))).ok());
    }
    ASSERT_TRUE(writer->finish().ok());
    const auto result = compare(2.0F, LetterTokenizer(false), text_);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::mismatch);
    EXPECT_NE(result.error().message.find("rows"), std::string::npos);
  }
}

TEST_F(WithBase, AnotherTextOrTokenizerIsRefused) {
  const auto text = compare(2.0F, LetterTokenizer(false), "abcdefghijkXmnop");
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::mismatch);
  EXPECT_NE(text.error().message.find("token 11"), std::string::npos);
  const auto tokenizer = compare(2.0F, LetterTokenizer(false, "other"), text_);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().code, ErrorCode::mismatch);
}

}  // namespace
}  // namespace headrace
