// The benchmark on a tiny model: what is measured, in which order, and beside which bound.
#include "app/bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

/// Any text is the tokens 0 to 49, over and over.
class CountingTokenizer final : public Tokenizer {
 public:
  std::string description() const override { return "counting"; }
  int64_t vocab_size() const override { return 50; }
  const SpecialTokens& special() const override { return special_; }
  TokenKind kind(TokenId) const override { return TokenKind::normal; }
  std::string_view piece(TokenId) const override { return "x"; }
  std::string bytes(TokenId) const override { return "x"; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<TokenId> ids(text.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i % 50);
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

OpenedModel tiny() {
  const std::string path = testing::TempDir() + "bench_test.gguf";
  test::tiny_model(test::tiny_gemma3_options()).file.write(path);
  OpenedModel opened;
  opened.checkpoint = std::move(open_checkpoint(path).value());
  opened.tokenizer = std::make_shared<CountingTokenizer>();
  opened.backend = make_cpu_backend({.isa = available_isas().back(), .num_threads = 1});
  opened.model = std::move(load_model(*opened.checkpoint, *opened.backend, {}).value());
  opened.options.chunk_tokens = 16;
  std::filesystem::remove(path);
  return opened;
}

const std::vector<BenchTest> kTests = {{.n_prompt = 40},
                                       {.n_gen = 12},
                                       {.n_gen = 12, .parallel = 3},
                                       {.n_gen = 12, .depth = 30},
                                       {.n_gen = 12, .parallel = 3, .depth = 30}};

TEST(Bench, EveryTestHasItsFiguresAndItsBound) {
  const OpenedModel model = tiny();
  std::vector<std::string> stages;
  const auto note = [&](const BenchProgress& now) {
    stages.push_back(now.test + ": " + now.stage);
  };
  const auto result = run_bench(model, kTests, 3, {note, [] { return false; }});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  ASSERT_EQ(result->rows.size(), kTests.size());
  EXPECT_GT(result->peak_macs_per_second, 0);
  EXPECT_FALSE(result->peak_instruction.empty());
  for (const BenchRow& row : result->rows) {
    SCOPED_TRACE(bench_test_name(row.test));
    EXPECT_EQ(row.samples.size(), 3U);
    EXPECT_GT(row.rate.min, 0);
    EXPECT_LE(row.rate.min, row.rate.median);
    EXPECT_LE(row.rate.median, row.rate.max);
    EXPECT_TRUE(std::isfinite(row.bound));
    EXPECT_FALSE(row.is_above_bound());
    EXPECT_GT(row.bytes_per_token, 0);
    EXPECT_GT(row.read_bytes_per_second, 0);
  }
  // Parallel sequences share the weights, depth adds keys and values.
  const auto& rows = result->rows;
  EXPECT_LT(rows[2].bytes_per_token, rows[1].bytes_per_token);
  EXPECT_GT(rows[3].bytes_per_token, rows[1].bytes_per_token);
  EXPECT_GT(rows[3].macs_per_token, rows[1].macs_per_token);
  EXPECT_LT(rows[0].bytes_per_token, rows[1].bytes_per_token);
  for (const char* stage : {"pp40: warming up", "tg12 x3: 3 of 3", "tg12 @ d30: filling"}) {
    EXPECT_NE(std::find(stages.begin(), stages.end(), stage), stages.end()) << stage;
  }
}

TEST(Bench, StopsWhenAsked) {
  const OpenedModel model = tiny();
  for (const int most : {1, 4, 12}) {  // between stages, and within one
    int calls = 0;
    const auto result =
        run_bench(model, kTests, 3, {[](const BenchProgress&) {}, [&] { return ++calls == most; }});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::cancelled);
    EXPECT_EQ(calls, most);
  }
}

TEST(Bench, NothingToDo) {
  const OpenedModel model = tiny();
  const auto result = run_bench(model, {}, 3, {[](const BenchProgress&) {}, [] { return false; }});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->rows.empty());
}

}  // namespace
}  // namespace headrace
