// What the machine allows a model: sums that can be done by hand, and a measurement of a tiny one.
#include "app/model_bounds.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "tests/tiny_opened_model.h"

namespace headrace {
namespace {

constexpr WeightWork kBoundWork{
    .layer_bytes = 1000, .head_bytes = 300, .top_bytes = 200, .layer_macs = 50, .head_macs = 10};
/// A key and its value take 2 * 2 * 8 * 2 = 64 bytes.
const CacheSpec kBoundCache{.kind = CacheSpec::Kind::paged, .num_kv_heads = 2, .head_dim = 8};

ModelBounds bounds(double bytes_per_second, double macs_per_second, int64_t chunk_tokens = 4) {
  return {kBoundWork, StepCost(kBoundWork, {kBoundCache}, KvType::f16, 16),
          MachineLimits{bytes_per_second, macs_per_second}, chunk_tokens};
}

TEST(ModelBounds, DecodingReadsWeightsAndKeys) {
  const ModelBounds by_memory = bounds(1000, 1e9);
  EXPECT_DOUBLE_EQ(by_memory.decode_time(0, 1).seconds, 1.2);
  EXPECT_FALSE(by_memory.decode_time(0, 1).is_by_compute);
  // Keys before the rows: 5, 6, 7.
  EXPECT_DOUBLE_EQ(by_memory.decode_time(5, 3).seconds, 3 * 1.2 + 18 * 0.064);
  EXPECT_DOUBLE_EQ(by_memory.decode_tokens_per_second(), 1 / 1.2);
  EXPECT_DOUBLE_EQ(by_memory.decode_tokens_per_second(4, 10), 4 / (1.3 + 40 * 0.064));
  EXPECT_EQ(by_memory.decode_time(5, 0).seconds, 0);
}

TEST(ModelBounds, LongDecodingIsLookedAtHereAndThere) {
  // Exact, since what a step reads grows by the same amount from one to the next.
  const double by_hand = 10'000 * 1.2 + 0.064 * (10'000.0 * 9'999 / 2 + 10'000.0 * 100);
  EXPECT_NEAR(bounds(1000, 1e9).decode_time(100, 10'000).seconds, by_hand, by_hand * 1e-3);
}

TEST(ModelBounds, PromptsComputeInChunks) {
  const ModelBounds by_compute = bounds(1e9, 100);
  // Two steps: 4 rows and 2, the last with logits. A pair of query and key: 2 * 16 multiply-adds.
  const double macs = 6 * 50 + 10 + 32 * (1 + 2 + 3 + 4 + 5 + 6);
  EXPECT_DOUBLE_EQ(by_compute.prefill_time(0, 6).seconds, macs / 100);
  EXPECT_TRUE(by_compute.prefill_time(0, 6).is_by_compute);
  EXPECT_GT(by_compute.prefill_time(10, 6).seconds, by_compute.prefill_time(0, 6).seconds);
  EXPECT_DOUBLE_EQ(by_compute.prefill_tokens_per_second(), 4 / ((4 * 50 + 10 + 32 * 10) / 100.0));
  // Weights are read once a step, of the last one the head too.
  const ModelBounds by_memory = bounds(1000, 1e9);
  EXPECT_DOUBLE_EQ(by_memory.prefill_time(0, 6).seconds, 1.0 + 1.2 + 4 * 0.064);
  EXPECT_FALSE(by_memory.prefill_time(0, 6).is_by_compute);
}

TEST(ModelBounds, ShareOfTheBandwidth) {
  const ModelBounds of = bounds(1000, 1e9);
  EXPECT_EQ(of.fraction_of_bandwidth({}), 0);
  const DecodeWork work{.num_steps = 5, .num_top_steps = 2, .ns = 20'000'000'000, .kv_bytes = 700};
  EXPECT_DOUBLE_EQ(of.bytes_of(work), 5 * 1000 + 3 * 300 + 2 * 200 + 700);
  EXPECT_DOUBLE_EQ(of.fraction_of_bandwidth(work), 7000.0 / 20 / 1000);
}

TEST(ModelBounds, AreMeasuredOnceForAll) {
  std::vector<std::unique_ptr<OpenedModel>> models;
  for (int i = 0; i < 3; ++i) {
    models.push_back(std::make_unique<OpenedModel>(tiny_opened_model(test::tiny_gemma3_options())));
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto measured = measure_bounds(models);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(taken.count(), 5) << "some tenths of a second, on a machine that is busy";
  ASSERT_EQ(measured.size(), 3U);
  for (const auto& each : measured) {
    ASSERT_NE(each, nullptr);
    EXPECT_TRUE(std::isfinite(each->decode_tokens_per_second()));
    EXPECT_GT(each->decode_tokens_per_second(), 0);
    EXPECT_GT(each->prefill_tokens_per_second(), 0);
    EXPECT_EQ(each->limits().macs_per_second, measured[0]->limits().macs_per_second);
    // More to read, fewer a second.
    EXPECT_LT(each->decode_tokens_per_second(1, 30), each->decode_tokens_per_second());
  }
}

TEST(ModelBounds, NoModels) {
  EXPECT_TRUE(measure_bounds({}).empty());
}

}  // namespace
}  // namespace headrace
