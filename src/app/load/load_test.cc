// A load on a tiny model, through a real engine.
#include "app/load/load.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/registry.h"
#include "tests/tiny_opened_model.h"

namespace headrace {
namespace {

const BenchHooks kNoBenchHooks = {[](const BenchProgress&) {}, [] { return false; }};

LoadPlan plan_of(const char* input, const char* output, int64_t concurrency) {
  LoadPlan plan;
  plan.spec.input = *LoadLength::parse(input);
  plan.spec.output = *LoadLength::parse(output);
  plan.pace.concurrency = concurrency;
  plan.pace.num_requests = 24;
  plan.max_sequences = 4;
  plan.num_warm_up = 3;
  return plan;
}

LoadResult run(OpenedModel& model, const LoadPlan& plan,
               std::shared_ptr<const std::vector<BenchRow>> rates = nullptr) {
  auto result = run_load(model, plan, std::move(rates), kNoBenchHooks);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return result.ok() ? std::move(result).value() : LoadResult{};
}

TEST(Load, FiguresAddUp) {
  OpenedModel model = tiny_opened_model({});
  const LoadPlan plan = plan_of("10..60", "2..20", 6);
  const auto tests = rate_tests(plan.spec, model.options.chunk_tokens, plan.max_batch(), 256);
  auto measured = run_bench(model, tests, 1, kNoBenchHooks);
  ASSERT_TRUE(measured.ok());
  const auto rows = std::make_shared<const std::vector<BenchRow>>(std::move(measured->rows));
  const LoadResult result = run(model, plan, rows);
  const LoadSummary& summary = result.summary;
  EXPECT_EQ(summary.num_ok, 24);
  EXPECT_EQ(result.requests.size(), 24U) << "without those that warm up";
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  for (const LoadRecord& request : result.requests) {
    prompt_tokens += request.prompt_tokens;
    output_tokens += static_cast<int64_t>(request.token_ns.size());
    EXPECT_LT(request.conversation, LoadWorkload::kWarmUp);
  }
  EXPECT_EQ(summary.prompt_tokens, prompt_tokens);
  EXPECT_EQ(summary.output_tokens, output_tokens);
  EXPECT_EQ(summary.itl_ms.count, output_tokens - 24);
  EXPECT_LE(summary.most_per_step, 4);
  EXPECT_GT(summary.tokens_per_step, 1);
  EXPECT_LE(summary.running.max(), 4);
  EXPECT_GT(summary.scheduling_us, 0);
  EXPECT_GT(summary.forward_ms, 0);
  EXPECT_EQ(result.kv_tokens, 4 * 80 + 3 * 16) << "and a part of a block for each";
  ASSERT_TRUE(result.ideal.has_value());
  EXPECT_EQ(result.ideal->batch, 4);
  EXPECT_EQ(result.ideal->work.computed_tokens, prompt_tokens - summary.cached_tokens);
  EXPECT_EQ(result.ideal->work.decoded_tokens, output_tokens - 24);
  EXPECT_GT(result.fraction_of_ideal(), 0);
  EXPECT_GT(result.fraction_of_bound(), 0);
  EXPECT_LT(result.fraction_of_bound(), 1);
  EXPECT_TRUE(std::isfinite(result.fraction_at_its_batches()));
}

TEST(Load, AnswersDoNotDependOnHowTheyAreServed) {
  OpenedModel model = tiny_opened_model(test::tiny_gemma3_options());
  LoadPlan plan = plan_of("10..60", "2..20", 6);
  plan.spec.prefix_tokens = 40;
  plan.pace.temperature = 0.7;
  const LoadResult first = run(model, plan);
  EXPECT_GT(first.summary.prefix_hit_rate, 0.3);
  EXPECT_EQ(first.ideal.has_value(), false);

  LoadPlan stiff = plan;
  stiff.batching = LoadBatching::static_batch;
  LoadPlan padded = plan;
  padded.batching = LoadBatching::padded;
  LoadPlan alone = plan;
  alone.pace.concurrency = 1;
  alone.prefix_cache = false;
  LoadPlan small = plan;  // of memory: some begin again
  small.kv_bytes = first.kv_bytes / 2;
  LoadPlan open = plan;
  open.pace.rate = 1000;
  for (const LoadPlan& other : {stiff, padded, alone, small, open}) {
    SCOPED_TRACE(load_name(other));
    const LoadResult again = run(model, other);
    EXPECT_EQ(again.fingerprint, first.fingerprint);
    EXPECT_EQ(again.summary.answers_hash, first.summary.answers_hash);
    EXPECT_EQ(again.summary.cached_tokens > 0, other.prefix_cache);
  }
  LoadPlan other = plan;
  other.spec.seed = 2;
  EXPECT_NE(run(model, other).fingerprint, first.fingerprint);
}

TEST(Load, NamesItsPlans) {
  LoadPlan plan = plan_of("1", "1", 16);
  EXPECT_EQ(load_name(plan), "concurrency 16");
  plan.batching = LoadBatching::static_batch;
  EXPECT_EQ(load_name(plan), "concurrency 16 static");
  plan.batching = LoadBatching::padded;
  EXPECT_EQ(load_name(plan), "concurrency 16 padded");
  plan.pace.rate = 2.5;
  plan.batching = LoadBatching::continuous;
  EXPECT_EQ(load_name(plan), "rate 2.5");
  plan.pace.rate = 100000;
  EXPECT_EQ(load_name(plan), "rate 100000");
}

TEST(Load, MaxBatch) {
  LoadPlan plan = plan_of("1", "1", 16);
  EXPECT_EQ(plan.max_batch(), 4);
  plan.max_sequences = 64;
  EXPECT_EQ(plan.max_batch(), 16);
  plan.pace.num_requests = 3;
  EXPECT_EQ(plan.max_batch(), 3);
  plan.pace.num_requests = 100;
  plan.pace.rate = 2;
  EXPECT_EQ(plan.max_batch(), 64);
}

TEST(Load, FitsContextAndMemory) {
  OpenedModel model = tiny_opened_model({});
  const ModelConfig config = recognize(*model.checkpoint)->config;
  MemoryNeeds needs = memory_needs(config, 50);
  needs.weight_bytes = 10 << 20;
  LoadPlan plan = plan_of("100..200", "56", 4);
  constexpr uint64_t kPlenty = uint64_t{1} << 40;
  EXPECT_TRUE(check_load_fits({plan}, config, needs, kPlenty).ok());
  plan.spec.prefix_tokens = 1;
  const auto context = check_load_fits({plan}, config, needs, kPlenty);
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(Result<void>(context).error().code, ErrorCode::context_length_exceeded);
  EXPECT_NE(Result<void>(context).error().message.find("257"), std::string::npos);
  plan.spec.prefix_tokens = 0;
  plan.max_sequences = 1024;
  const auto memory = check_load_fits({plan}, config, needs, 40 << 20);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(Result<void>(memory).error().code, ErrorCode::resource_exhausted);
  // 128 bytes a token (2 layers, keys and values, 2 heads of 8, 2 bytes each): 1024 * 256 tokens
  // and 1023 blocks.
  EXPECT_NE(Result<void>(memory).error().message.find("KV cache 33 MiB"), std::string::npos)
      << Result<void>(memory).error().message;
}

TEST(Load, ACacheThatIsTooSmall) {
  OpenedModel model = tiny_opened_model({});
  const LoadResult small = run(model, plan_of("10", "10", 4));
  LoadPlan plan = plan_of("100", "50", 4);
  plan.kv_bytes = 128 * small.kv_bytes / static_cast<uint64_t>(small.kv_tokens);
  const auto result = run_load(model, plan, nullptr, kNoBenchHooks);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(
      result.error().to_string(),
      "a request of 150 tokens may come, the KV cache holds 128 (give more with --kv-memory)");
  plan.kv_bytes = 100;
  const auto tiny = run_load(model, plan, nullptr, kNoBenchHooks);
  ASSERT_FALSE(tiny.ok());
  EXPECT_EQ(tiny.error().where, "--kv-memory");
}

TEST(Load, StopsWhenAsked) {
  OpenedModel model = tiny_opened_model({});
  const auto result = run_load(model, plan_of("10", "10", 4), nullptr,
                               {[](const BenchProgress&) {}, [] { return true; }});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace headrace
