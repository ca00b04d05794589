#include "app/load/rates.h"

#include <gtest/gtest.h>

#include "app/load/test_load_spec.h"

namespace headrace {
namespace {

using test::load_spec;

BenchRow row(BenchTest test, double rate) {
  BenchRow out;
  out.test = test;
  out.rate = summarize({rate});
  out.bound = 2 * rate;
  return out;
}

LoadRates rates() {
  return rates_of({row({.n_prompt = 256}, 2000), row({.n_gen = 32, .parallel = 4}, 200),
                   row({.n_gen = 32}, 100)});
}

TEST(LoadRates, TestsOfAWorkload) {
  std::vector<std::string> names;
  for (const BenchTest& test : rate_tests(load_spec("250", "64"), 256, 12, 8192)) {
    names.push_back(bench_test_name(test));
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"pp256", "tg32 @ d266", "tg32 x2 @ d266", "tg32 x4 @ d266",
                                      "tg32 x8 @ d266", "tg32 x12 @ d266"}));
  // A long prompt is measured at its own length, and nothing passes the context.
  EXPECT_EQ(bench_test_name(rate_tests(load_spec("700", "64"), 256, 1, 8192)[0]), "pp700");
  for (const BenchTest& test : rate_tests(load_spec("200", "56"), 512, 4, 256)) {
    EXPECT_LE(test.n_prompt + test.depth + test.n_gen, 256);
  }
}

TEST(LoadRates, DecodingBetweenTwoBatches) {
  EXPECT_DOUBLE_EQ(rates().prefill, 2000);
  EXPECT_DOUBLE_EQ(rates().decode_rate(1), 100);
  EXPECT_DOUBLE_EQ(rates().decode_rate(4), 200);
  EXPECT_DOUBLE_EQ(rates().decode_rate(0.5), 100);
  EXPECT_DOUBLE_EQ(rates().decode_rate(9), 200);
  // Steps of 10 ms and 20 ms: of two, a third of the way between.
  EXPECT_NEAR(rates().decode_rate(2), 2 / (0.010 + 0.010 / 3), 1e-9);
}

LoadRecord request(int64_t prompt, int64_t cached, size_t tokens) {
  LoadRecord out;
  out.prompt_tokens = prompt;
  out.stats.cached_tokens = cached;
  out.token_ns.resize(tokens);
  return out;
}

TEST(LoadRates, IdealTime) {
  LoadRecord failed = request(5000, 0, 3);
  failed.error = ErrorCode::internal;
  const LoadWork work = work_of({request(500, 100, 11), request(600, 0, 1), failed});
  EXPECT_EQ(work.computed_tokens, 1000);
  EXPECT_EQ(work.decoded_tokens, 10);
  EXPECT_DOUBLE_EQ(ideal_seconds(work, rates(), 4), 0.5 + 10 / 200.0);
  const LoadRates bounds = bounds_of({row({.n_gen = 32}, 100), row({.n_prompt = 256}, 2000)});
  EXPECT_DOUBLE_EQ(ideal_seconds(work, bounds, 4), 0.25 + 10 / 200.0);
  // Four steps of two and one of two prompts' first tokens; a late reader saw two at once.
  const std::vector<LoadSample> samples = {
      {.num_steps = 1, .num_tokens = 2, .num_first = 2},
      {.num_steps = 2, .num_tokens = 4},
      {.num_steps = 1, .num_tokens = 2},
      {.num_steps = 1, .num_tokens = 4},
  };
  EXPECT_NEAR(ideal_seconds_of_steps(work, rates(), samples),
              0.5 + 6 / rates().decode_rate(2) + 4 / 200.0, 1e-12);
}

}  // namespace
}  // namespace headrace
