// A completion's phases beside their bounds: which steps belong to which, and which tokens.
#include "server/explain_bounds.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace headrace::server {
namespace {

using api::Json;

/// A step reads 100 bytes and computes 10 multiply-adds a row, with 1 000 and 1 000 a second: one
/// row takes 0.1 s by memory, twenty take 0.2 s by arithmetic.
ModelBounds simple_bounds() {
  constexpr WeightWork kWeights{.layer_bytes = 100, .layer_macs = 10};
  return {kWeights, StepCost(kWeights, {}, KvType::f16, 0), MachineLimits{1000, 1000}, 20};
}

TimelineEntry entry(double ms, int64_t rows, int32_t tokens, int32_t steps = 1) {
  TimelineEntry out;
  out.duration_ms = ms;
  out.rows = rows;
  out.num_tokens = tokens;
  out.num_steps = steps;
  return out;
}

TraceChoice choice_of(int64_t prompt, int64_t cached, int64_t completion,
                      std::vector<TimelineEntry> entries) {
  TraceChoice out;
  out.stats.prompt_tokens = prompt;
  out.stats.cached_tokens = cached;
  out.stats.completion_tokens = completion;
  out.stats.prefill_ms = 5000;  // with waiting
  out.stats.decode_ms = 9000;
  auto timeline = std::make_shared<Timeline>();
  timeline->entries = std::move(entries);
  out.timeline = std::move(timeline);
  return out;
}

TEST(ExplainBounds, PhasesByTheStepsThatRan) {
  const TraceChoice choice = choice_of(
      40, 10, 4, {entry(300, 20, 0), entry(200, 10, 1), entry(150, 1, 1), entry(350, 2, 2, 2)});
  const Json out = bounds_json(choice, simple_bounds());
  const Json& prefill = out["prefill"];
  EXPECT_EQ(prefill["tokens"], 30);
  EXPECT_DOUBLE_EQ(prefill["ms"], 500);
  EXPECT_DOUBLE_EQ(prefill["tokens_per_second"], 60);
  EXPECT_DOUBLE_EQ(prefill["bound_ms"], 300);  // 200 for twenty rows, 100 for ten
  EXPECT_DOUBLE_EQ(prefill["bound_tokens_per_second"], 100);
  EXPECT_DOUBLE_EQ(prefill["fraction_of_bound"], 0.6);
  EXPECT_EQ(prefill["bound_kind"], "compute");
  const Json& decode = out["decode"];
  EXPECT_EQ(decode["tokens"], 3);
  EXPECT_DOUBLE_EQ(decode["ms"], 500);
  EXPECT_DOUBLE_EQ(decode["bound_ms"], 300);
  EXPECT_DOUBLE_EQ(decode["fraction_of_bound"], 0.6);
  EXPECT_EQ(decode["bound_kind"], "bandwidth");
}

TEST(ExplainBounds, RowsComputedAgainAreNoWorkOfThePrompt) {
  // Its memory was taken in the prompt, and again after the first token.
  const TraceChoice choice = choice_of(
      20, 0, 2, {entry(100, 15, 0), entry(200, 20, 1), entry(200, 20, 0), entry(100, 1, 1)});
  const Json out = bounds_json(choice, simple_bounds());
  EXPECT_EQ(out["prefill"]["tokens"], 20);
  EXPECT_DOUBLE_EQ(out["prefill"]["fraction_of_bound"], 200.0 / 300);
  EXPECT_EQ(out["decode"]["tokens"], 1);
  EXPECT_DOUBLE_EQ(out["decode"]["fraction_of_bound"], 100.0 / 300);
}

TEST(ExplainBounds, APhaseWithoutStepsHasNone) {
  const Json cut = bounds_json(choice_of(40, 10, 0, {entry(300, 20, 0)}), simple_bounds());
  EXPECT_EQ(cut["prefill"]["tokens"], 20);
  EXPECT_FALSE(cut.contains("decode"));
  const Json short_one = bounds_json(choice_of(40, 0, 1, {entry(300, 40, 1)}), simple_bounds());
  EXPECT_TRUE(short_one.contains("prefill"));
  EXPECT_FALSE(short_one.contains("decode"));
  EXPECT_TRUE(bounds_json(choice_of(40, 0, 0, {}), simple_bounds()).empty());
}

TEST(ExplainBounds, WithoutATimelineThePhasesAsAWhole) {
  TraceChoice choice = choice_of(40, 20, 11, {});
  choice.timeline = nullptr;
  const Json out = bounds_json(choice, simple_bounds());
  EXPECT_EQ(out["prefill"]["tokens"], 20);
  EXPECT_DOUBLE_EQ(out["prefill"]["ms"], 5000);
  EXPECT_EQ(out["decode"]["tokens"], 10);
  EXPECT_DOUBLE_EQ(out["decode"]["fraction_of_bound"], 1000.0 / 9000);
}

}  // namespace
}  // namespace headrace::server
