// Percentiles, requests and steps as figures, and the pieces of a plot.
#include "app/load/summary.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(LoadStats, Percentiles) {
  const std::vector<double> values = {10, 20, 30, 40, 50};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 10);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 30);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 46);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 50);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.99), 7);
}

TEST(LoadStats, Distribution) {
  const Distribution out = distribution({5, 1, 3});
  EXPECT_EQ(out.count, 3);
  EXPECT_DOUBLE_EQ(out.mean, 3);
  EXPECT_DOUBLE_EQ(out.min, 1);
  EXPECT_DOUBLE_EQ(out.p50, 3);
  EXPECT_DOUBLE_EQ(out.max, 5);
  ASSERT_EQ(out.percents.size(), 101U);
  EXPECT_DOUBLE_EQ(out.percents[0], 1);
  EXPECT_DOUBLE_EQ(out.percents[75], 4);
  EXPECT_DOUBLE_EQ(out.percents[100], 5);
  EXPECT_TRUE(std::is_sorted(out.percents.begin(), out.percents.end()));
  EXPECT_EQ(distribution({}).count, 0);
  // Sums of equal values may be off by a rounding; the mean is not.
  const Distribution same = distribution(std::vector<double>(10, 0.1));
  EXPECT_EQ(same.mean, 0.1);
}

TEST(LoadStats, MeansOverTime) {
  TimeMean mean;
  EXPECT_TRUE(mean.is_empty());
  mean.add(4, 0);
  EXPECT_DOUBLE_EQ(mean.mean(), 4);
  mean.add(1, 3);
  mean.add(2, 1);
  EXPECT_DOUBLE_EQ(mean.mean(), 1.25);
  EXPECT_DOUBLE_EQ(mean.min(), 1);
  EXPECT_DOUBLE_EQ(mean.max(), 4);
}

/// Arrives at `due`, is taken up 5 ms later; tokens at the given milliseconds.
LoadRecord request(int64_t due, std::vector<int64_t> tokens) {
  LoadRecord out;
  out.due_ns = due * kMs;
  out.submitted_ns = (due + 2) * kMs;
  for (const int64_t at : tokens) out.token_ns.push_back(at * kMs);
  out.end_ns = out.token_ns.back();
  out.prompt_tokens = 100;
  out.stats.queue_ms = 3;
  out.stats.cached_tokens = 30;
  out.answer_hash = static_cast<uint64_t>(due + 1);
  return out;
}

LoadRecords some_records() {
  LoadRecords records;
  records.requests = {request(0, {10, 20, 60}), request(100, {150}), request(104, {120, 130})};
  LoadRecord failed = request(10, {90});
  failed.error = ErrorCode::overloaded;
  records.requests.push_back(failed);
  return records;
}

TEST(LoadSummary, RequestsAreCountedFromTheirArrival) {
  const LoadSummary out = summarize_load(some_records(), {});
  EXPECT_EQ(out.num_requests, 4);
  EXPECT_EQ(out.num_ok, 3);
  EXPECT_EQ(out.num_good, 3);
  EXPECT_EQ(out.errors, (std::map<std::string, int64_t>{{"overloaded", 1}}));
  EXPECT_EQ(out.prompt_tokens, 300);
  EXPECT_EQ(out.cached_tokens, 90);
  EXPECT_EQ(out.output_tokens, 6);
  EXPECT_EQ(out.answers_hash, 1U ^ 101U ^ 105U);
  EXPECT_DOUBLE_EQ(out.seconds, 0.150);
  EXPECT_DOUBLE_EQ(out.occupied_seconds, 0.088 + 0.048);  // 2 to 90 ms, 102 to 150 ms
  EXPECT_DOUBLE_EQ(out.per_second(out.num_ok), 20);
  EXPECT_DOUBLE_EQ(out.ttft_ms.min, 10);
  EXPECT_DOUBLE_EQ(out.ttft_ms.p50, 16);
  EXPECT_DOUBLE_EQ(out.ttft_ms.max, 50);
  EXPECT_EQ(out.itl_ms.count, 3);
  EXPECT_DOUBLE_EQ(out.itl_ms.max, 40);
  EXPECT_EQ(out.tpot_ms.count, 2) << "one token has none after it";
  EXPECT_DOUBLE_EQ(out.tpot_ms.max, 25);
  EXPECT_DOUBLE_EQ(out.e2e_ms.max, 60);
  EXPECT_DOUBLE_EQ(out.queue_ms.mean, 5);
}

TEST(LoadSummary, Slo) {
  const auto good = [](const char* slo) {
    return summarize_load(some_records(), *parse_slo(slo)).num_good;
  };
  EXPECT_EQ(good("ttft:50ms"), 3);
  EXPECT_EQ(good("ttft:49ms"), 2);
  EXPECT_EQ(good("itl:39ms"), 2) << "each of its tokens";
  EXPECT_EQ(good("tpot:25ms"), 3) << "on average";
  EXPECT_EQ(good("tpot:24ms"), 2);
  EXPECT_EQ(good("e2e:30ms"), 1);
  EXPECT_EQ(good("ttft:49ms,itl:39ms"), 1);
}

TEST(LoadSummary, NothingEndedWell) {
  LoadRecords records = some_records();
  for (LoadRecord& request : records.requests) request.error = ErrorCode::internal;
  const LoadSummary out = summarize_load(records, {});
  EXPECT_EQ(out.num_ok, 0);
  EXPECT_EQ(out.ttft_ms.count, 0);
  EXPECT_EQ(summarize_load({}, {}).seconds, 0);
  EXPECT_TRUE(summarize_load({}, {}).series.empty());
}

std::vector<LoadSample> some_samples() {
  return {
      {.ns = 100 * kMs,
       .num_running = 2,
       .num_waiting = 1,
       .num_held_back = 1,
       .num_steps = 1,
       .num_rows = 20,
       .num_tokens = 2,
       .num_first = 2,
       .kv_usage = 0.5,
       .slot_utilisation = 0.8},
      {.ns = 200 * kMs,
       .num_running = 2,
       .num_steps = 2,
       .num_rows = 4,
       .num_tokens = 4,
       .kv_usage = 0.7,
       .slot_utilisation = 0.9},
      {.ns = 400 * kMs, .num_steps = 1, .num_rows = 1, .num_tokens = 1},
  };
}

TEST(LoadSummary, Engine) {
  LoadRecords records = some_records();
  records.requests.front().end_ns = 400 * kMs;
  records.samples = some_samples();
  records.before.num_steps = 10;
  records.after.num_steps = 14;
  records.after.generated_tokens = 7;
  records.after.scheduling_ns = 40'000;
  records.after.forward_ns = 8 * kMs;
  records.before.prefix_query_tokens = 100;
  records.after.prefix_query_tokens = 500;
  records.after.prefix_hit_tokens = 100;
  records.after.rungs[5] = 3;
  records.reading_seconds = 0.004;
  const LoadSummary out = summarize_load(records, {});
  EXPECT_EQ(out.num_steps, 4);
  EXPECT_DOUBLE_EQ(out.tokens_per_step, 1.75);
  EXPECT_DOUBLE_EQ(out.most_per_step, 2);
  EXPECT_DOUBLE_EQ(out.scheduling_us, 10);
  EXPECT_DOUBLE_EQ(out.forward_ms, 2);
  EXPECT_DOUBLE_EQ(out.prefix_hit_rate, 0.25);
  EXPECT_EQ(out.rungs[5], 3);
  EXPECT_DOUBLE_EQ(out.reading_share, 0.01);
  EXPECT_DOUBLE_EQ(out.waiting.max(), 2);
  EXPECT_NEAR(out.kv_usage.mean(), (0.5 * 100 + 0.7 * 200) / 300, 1e-12);
  EXPECT_DOUBLE_EQ(out.kv_usage.min(), 0);
  EXPECT_DOUBLE_EQ(out.slot_utilisation.min(), 0.8) << "an empty cache has none";
  EXPECT_NEAR(out.slot_utilisation.mean(), (0.8 * 100 + 0.9 * 200) / 300, 1e-12);
}

TEST(LoadSeries, PiecesOfTime) {
  const auto series = load_series(some_samples(), 0.4, 4);
  ASSERT_EQ(series.size(), 4U);
  EXPECT_DOUBLE_EQ(series[0].seconds, 0.1);
  EXPECT_DOUBLE_EQ(series[3].seconds, 0.4);
  EXPECT_NEAR(series[0].output_rate, 20, 1e-9);
  EXPECT_NEAR(series[0].prompt_rate, 200, 1e-9);
  EXPECT_NEAR(series[1].output_rate, 40, 1e-9);
  EXPECT_NEAR(series[2].output_rate, 5, 1e-9) << "a step over two pieces";
  EXPECT_NEAR(series[3].output_rate, 5, 1e-9);
  EXPECT_NEAR(series[0].running, 0, 1e-9);
  EXPECT_NEAR(series[1].running, 2, 1e-9);
  EXPECT_NEAR(series[1].waiting, 2, 1e-9);
  EXPECT_NEAR(series[3].kv_usage, 0.7, 1e-9);
  EXPECT_NEAR(series[1].slot_utilisation, 0.8, 1e-9);
  EXPECT_EQ(series[0].slot_utilisation, 1);
  double tokens = 0;
  for (const LoadBucket& bucket : load_series(some_samples(), 0.4, 7)) {
    tokens += bucket.output_rate * 0.4 / 7;
  }
  EXPECT_NEAR(tokens, 7, 1e-9) << "none is lost, however it is cut";
  EXPECT_TRUE(load_series({}, 0, 10).empty());
}

}  // namespace
}  // namespace headrace
