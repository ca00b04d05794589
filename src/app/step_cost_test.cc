#include "app/step_cost.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

constexpr WeightWork kWeights{
    .layer_bytes = 1000, .head_bytes = 300, .top_bytes = 200, .layer_macs = 50, .head_macs = 7};

CacheSpec paged() {
  return {.kind = CacheSpec::Kind::paged, .num_kv_heads = 2, .head_dim = 8};
}

CacheSpec window(int64_t size) {
  return {.kind = CacheSpec::Kind::window, .num_kv_heads = 2, .head_dim = 8, .window = size};
}

/// Pairs of query and key, counted one by one.
int64_t pairs(int64_t first, int64_t rows, int64_t most) {
  int64_t count = 0;
  for (int64_t i = first; i < first + rows; ++i) count += std::min(i + 1, most);
  return count;
}

TEST(StepCost, WeightsAreReadOnceAStep) {
  const StepCost cost(kWeights, {}, KvType::f16, 32);
  const Work one = cost.of({.num_sequences = 1, .rows = 1, .first_position = 9, .logit_rows = 1});
  EXPECT_DOUBLE_EQ(one.bytes, 1200);
  EXPECT_DOUBLE_EQ(one.macs, 57);
  const Work many = cost.of({.num_sequences = 8, .rows = 1, .first_position = 9, .logit_rows = 8});
  EXPECT_DOUBLE_EQ(many.bytes, 1300);
  EXPECT_DOUBLE_EQ(many.macs, 8 * 57);
  const Work chunk = cost.of({.rows = 256, .logit_rows = 0});
  EXPECT_DOUBLE_EQ(chunk.bytes, 1000);
  EXPECT_DOUBLE_EQ(chunk.macs, 256 * 50);
}

TEST(StepCost, OfExpertsThoseThatAStepsRowsUse) {
  WeightWork weights = kWeights;
  weights.expert_bytes = 800;  // a quarter of which, 200, is among layer_bytes
  weights.active_share = 0.25;
  const StepCost cost(weights, {}, KvType::f16, 32);
  const auto bytes = [&](int64_t num_sequences, int64_t rows) {
    return cost.of({.num_sequences = num_sequences, .rows = rows, .logit_rows = 0}).bytes;
  };
  EXPECT_DOUBLE_EQ(bytes(1, 1), 1000);
  const double two = 1000 + (1 - 0.75 * 0.75 - 0.25) * 800;
  EXPECT_DOUBLE_EQ(bytes(2, 1), two);
  EXPECT_DOUBLE_EQ(bytes(1, 2), two);
  EXPECT_NEAR(bytes(4, 128), 1600, 1e-6);
}

TEST(StepCost, AttentionCountsVisibleKeys) {
  constexpr int64_t kToken = 2 * 2 * 8 * 2;  // keys and values, heads, size, bytes
  for (const int64_t first : {0, 5, 19, 20, 21, 400}) {
    for (const int64_t rows : {1, 7, 30}) {
      const StepShape shape{
          .num_sequences = 3, .rows = rows, .first_position = first, .logit_rows = 0};
      const Work all = StepCost({}, {paged(), paged()}, KvType::f16, 32).of(shape);
      EXPECT_DOUBLE_EQ(all.bytes, static_cast<double>(2 * 3 * first * kToken));
      EXPECT_DOUBLE_EQ(all.macs, static_cast<double>(2 * 3 * 2 * 32 * pairs(first, rows, 1 << 30)));
      const Work some = StepCost({}, {window(20)}, KvType::f16, 32).of(shape);
      EXPECT_DOUBLE_EQ(some.bytes, static_cast<double>(3 * std::min<int64_t>(first, 19) * kToken));
      EXPECT_DOUBLE_EQ(some.macs, static_cast<double>(3 * 2 * 32 * pairs(first, rows, 20)));
    }
  }
}

TEST(StepCost, KvTypeDecidesTheBytes) {
  const StepShape shape{.first_position = 10, .logit_rows = 0};
  const Work half = StepCost({}, {paged()}, KvType::f16, 32).of(shape);
  const Work whole = StepCost({}, {paged()}, KvType::f32, 32).of(shape);
  EXPECT_DOUBLE_EQ(whole.bytes, 2 * half.bytes);
  EXPECT_DOUBLE_EQ(whole.macs, half.macs);
}

}  // namespace
}  // namespace headrace
