#include "app/bench_plan.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

std::vector<std::string> names(const std::vector<BenchTest>& tests) {
  std::vector<std::string> out;
  for (const BenchTest& test : tests) out.push_back(bench_test_name(test));
  return out;
}

TEST(BenchPlan, EveryCombinationOnce) {
  const auto tests = bench_tests(
      {.prompts = {512, 0, 512}, .gens = {128}, .parallels = {1, 8}, .depths = {4096, 0}});
  EXPECT_EQ(names(tests), (std::vector<std::string>{"pp512", "tg128", "tg128 x8", "tg128 @ d4096",
                                                    "tg128 x8 @ d4096"}));
  EXPECT_EQ(tests[0].num_tokens(), 512);
  EXPECT_EQ(tests[2].num_tokens(), 1024);
  EXPECT_TRUE(bench_tests({.prompts = {0}, .gens = {0}, .parallels = {1}, .depths = {0}}).empty());
}

TEST(BenchPlan, SequencesHoldTheLongestTest) {
  const auto tests =
      bench_tests({.prompts = {512}, .gens = {128}, .parallels = {1, 3}, .depths = {0, 200}});
  EXPECT_EQ(bench_sequence_tokens(tests), (std::vector<int64_t>{512, 328, 328}));
  EXPECT_TRUE(bench_sequence_tokens({}).empty());
}

struct Fits {
  ModelConfig config;
  MemoryNeeds needs;

  Fits() {
    config.context_length = 8192;
    needs.weight_bytes = 100 << 20;
    needs.caches = {2, CacheSpec{.num_kv_heads = 1, .head_dim = 64}};
    needs.activations.vocab = 1000;
  }
  Result<void> check(const std::vector<BenchTest>& tests, uint64_t available) const {
    return check_bench_fits(tests, config, needs, available);
  }
};

TEST(BenchPlan, ContextOfTheModel) {
  const Fits fits;
  EXPECT_TRUE(fits.check({{.n_prompt = 8192}}, 1ULL << 40).ok());
  const auto prompt = fits.check({{.n_prompt = 8193}}, 1ULL << 40);
  EXPECT_EQ(prompt.ok(), false);
  const auto deep = fits.check({{.n_gen = 128, .depth = 8065}}, 1ULL << 40);
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(Result<void>(deep).error().code, ErrorCode::context_length_exceeded);
  EXPECT_NE(Result<void>(deep).error().message.find("8193"), std::string::npos);
}

TEST(BenchPlan, MemoryIsAddedUp) {
  const Fits fits;
  // 512 bytes a token (2 layers, keys and values, 64 of 2 bytes): 32 * 4096 tokens are 64 MiB.
  const std::vector<BenchTest> tests = {{.n_gen = 96, .parallel = 32, .depth = 4000}};
  EXPECT_TRUE(fits.check(tests, 1ULL << 30).ok());
  auto refused = fits.check(tests, 300ULL << 20);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  for (const char* part : {"weights 100 MiB", "KV cache 64 MiB", "131072 tokens over 32 sequences",
                           "512 bytes each", "may use 270 MiB"}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace headrace
