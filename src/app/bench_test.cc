// The benchmark on a tiny model: what is measured, in which order, and beside which bound.
#include "app/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/tiny_opened_model.h"

namespace headrace {
namespace {

OpenedModel tiny() {
  return tiny_opened_model(test::tiny_gemma3_options());
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
