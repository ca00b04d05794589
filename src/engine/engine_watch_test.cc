// What can be seen of an engine from outside: figures of its steps, and whether one is stuck.
#include <gtest/gtest.h>

#include <future>
#include <numeric>
#include <vector>

#include "engine/test_engine.h"

namespace headrace {
namespace {

TEST(Histogram, AValueBelongsToTheFirstBucketThatReachesIt) {
  Histogram<3> histogram{.bounds = {1, 8, 16}};
  for (const double value : {0.0, 1.0, 1.5, 8.0, 16.0, 16.5, 1e9}) histogram.add(value);
  EXPECT_EQ(histogram.counts, (std::array<int64_t, 4>{2, 2, 1, 2}));
  EXPECT_EQ(histogram.num_values(), 7);
  EXPECT_DOUBLE_EQ(histogram.sum, 43.0 + 1e9);
}

TEST(EngineStats, StepsByRowsAndSeconds) {
  EngineOptions options = small_options();  // steps of up to 32 rows
  options.prefix_cache = false;
  Fixture fixture(options);
  fixture.runner->on_step([&](int64_t num_rows) { fixture.clock->advance_ms(num_rows); });
  Request request = request_of(prompt_of(70, 1), 10, 1);  // 32, 32, 6 rows, then 9 times one
  request.stop.ignore_eos = true;
  Stream stream = fixture.submit(request);
  fixture.run_until_idle();
  const EngineStats stats = fixture.engine->stats();
  const auto& rows = stats.step_rows_histogram;
  EXPECT_EQ(rows.num_values(), stats.num_steps);
  EXPECT_EQ(rows.num_values(), 12);
  EXPECT_DOUBLE_EQ(rows.sum, static_cast<double>(stats.step_rows));
  EXPECT_EQ(rows.bounds[3], 32);
  EXPECT_EQ(rows.counts[0], 9);
  EXPECT_EQ(rows.counts[1], 1);
  EXPECT_EQ(rows.counts[3], 2);
  const auto& seconds = stats.step_seconds;
  EXPECT_EQ(seconds.num_values(), 12);
  EXPECT_NEAR(seconds.sum, 0.079, 1e-3);
  EXPECT_EQ(seconds.bounds[2], 0.002);
  EXPECT_EQ(seconds.counts[2], 9) << "a millisecond and a bit";
  EXPECT_EQ(seconds.bounds[6], 0.05);
  EXPECT_EQ(seconds.counts[6], 2);
}

TEST(EngineStats, AStepThatFailedIsInNoHistogram) {
  Fixture fixture(small_options());
  fixture.runner->fail_next_step();
  Stream stream = fixture.submit(request_of({1, 2, 3}, 1, 1));
  fixture.engine->step(false);
  EXPECT_EQ(fixture.engine->stats().num_failed_steps, 1);
  EXPECT_EQ(fixture.engine->stats().step_rows_histogram.num_values(), 0);
  EXPECT_EQ(fixture.engine->stats().step_seconds.num_values(), 0);
}

}  // namespace
}  // namespace headrace
