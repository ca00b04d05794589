#include "app/memory_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace headrace {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

CacheSpec layer(CacheSpec::Kind kind, int64_t window = 0) {
  CacheSpec spec;
  spec.kind = kind;
  spec.num_kv_heads = 3;
  spec.head_dim = 64;
  spec.window = window;
  return spec;
}

MemoryNeeds needs_of(const std::vector<CacheSpec>& caches) {
  MemoryNeeds needs;
  needs.weight_bytes = 100 * kMiB;
  needs.caches = caches;
  needs.activations = {
      .embedding = 576, .queries = 576, .keys = 192, .feed_forward = 1536, .vocab = 49152};
  return needs;
}

TEST(MemoryPlan, PagedLayersCountWholeBlocks) {
  const std::vector<CacheSpec> caches(30, layer(CacheSpec::Kind::paged));
  MemoryNeeds needs = needs_of(caches);
  EXPECT_EQ(kv_bytes_per_token(needs), 23040U);
  EXPECT_EQ(kv_bytes(needs, 1), 16 * 23040U);
  EXPECT_EQ(kv_bytes(needs, 16), 16 * 23040U);
  EXPECT_EQ(kv_bytes(needs, 17), 32 * 23040U);
  needs.kv_type = KvType::f32;
  EXPECT_EQ(kv_bytes_per_token(needs), 46080U);
  // 64 bytes each of key and value, and two scales of two bytes, for three heads in each layer.
  needs.kv_type = KvType::q8;
  EXPECT_EQ(kv_bytes_per_token(needs), 30 * 3 * (128 + 4));
  EXPECT_EQ(kv_bytes(needs, 17), 32 * kv_bytes_per_token(needs));
  needs.kv_type = KvType::q12;  // 128 bytes of key
  EXPECT_EQ(kv_bytes_per_token(needs), 30 * 3 * (192 + 4));
}

TEST(MemoryPlan, WindowLayersStopGrowing) {
  const std::vector<CacheSpec> caches{layer(CacheSpec::Kind::window, 512)};
  const MemoryNeeds needs = needs_of(caches);
  EXPECT_EQ(kv_bytes(needs, 100), 112 * kv_bytes_per_token(needs));
  EXPECT_EQ(kv_bytes(needs, 32768), kv_bytes(needs, 8192));
  EXPECT_EQ(kv_bytes(needs, 32768), ((511 + 256 - 2) / 16 + 2) * 16 * kv_bytes_per_token(needs));
}

TEST(MemoryPlan, LayersWithoutCacheAreFree) {
  const std::vector<CacheSpec> caches{layer(CacheSpec::Kind::none)};
  EXPECT_EQ(kv_bytes(needs_of(caches), 4096), 0U);
}

TEST(MemoryPlan, LargestContextIsTheLastThatFits) {
  const std::vector<CacheSpec> caches(30, layer(CacheSpec::Kind::paged));
  const MemoryNeeds needs = needs_of(caches);
  EXPECT_EQ(largest_context(needs, 8192 * kMiB, 8192), 8192);
  const uint64_t limit = 200 * kMiB;
  const int64_t found = largest_context(needs, limit, 8192);
  const auto total = [&](int64_t tokens) {
    return needs.weight_bytes + activation_bytes(needs) + kv_bytes(needs, tokens);
  };
  EXPECT_GT(found, 0);
  EXPECT_LE(total(found), limit - limit / 10);
  EXPECT_GT(total(found + needs.block_tokens), limit - limit / 10);
}

TEST(MemoryPlan, HostileSizesSaturate) {
  CacheSpec huge = layer(CacheSpec::Kind::paged);
  huge.num_kv_heads = int64_t{1} << 24;
  huge.head_dim = int64_t{1} << 20;
  const std::vector<CacheSpec> caches(4096, huge);
  MemoryNeeds needs = needs_of(caches);
  constexpr int64_t kContext = int64_t{1} << 31;
  EXPECT_EQ(kv_bytes_per_token(needs), uint64_t{1} << 58);
  EXPECT_EQ(kv_bytes(needs, kContext), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(largest_context(needs, 8192 * kMiB, kContext), 0);
  needs.activations.queries = int64_t{1} << 62;
  EXPECT_EQ(activation_bytes(needs), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(total_bytes(needs, 1), std::numeric_limits<uint64_t>::max());
}

TEST(MemoryPlan, NeedsOfAConfig) {
  ModelConfig config;
  config.num_layers = 3;
  config.embedding_length = 100;
  config.feed_forward_length = 300;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 20;
  config.window = 64;
  config.is_window_layer = {true, false, true};
  const MemoryNeeds needs = memory_needs(config, 1000);
  const CacheSpec local{CacheSpec::Kind::window, 2, 20, 64};
  const CacheSpec full{CacheSpec::Kind::paged, 2, 20, 0};
  EXPECT_EQ(needs.caches, (std::vector<CacheSpec>{local, full, local}));
  EXPECT_EQ(kv_bytes_per_token(needs), 3 * 2 * 20 * 2 * 2U);
  // Three rows of the embedding, two of queries, keys, and gate and up; and the backend's copy of
  // the widest, in floats and in integers of up to five bytes.
  EXPECT_EQ(activation_bytes(needs),
            4U * (256 * (2 * 100 + 2 * 120 + 2 * 40 + 2 * 300) + 100 + 1000) + 9U * 256 * 300);
}

TEST(MemoryPlan, ExpertsTakeTheirRowsForEachOfATokensExperts) {
  ModelConfig config;
  config.num_layers = 2;
  config.embedding_length = 100;
  config.feed_forward_length = 300;
  config.num_heads = config.num_kv_heads = 1;
  config.head_dim = 20;
  config.is_window_layer = {false, false};
  config.moe = {.num_experts = 8, .num_active = 3, .expert_length = 50, .shared_length = 70};
  config.is_moe_layer = {true, true};
  const auto needs = [&] { return memory_needs(config, 1000).activations; };
  EXPECT_EQ(needs().feed_forward, 70) << "of the shared expert: no layer is dense";
  EXPECT_EQ(needs().experts, 8);
  EXPECT_EQ(needs().shared_scores, 1);
  EXPECT_EQ(needs().expert_hidden, 150);
  EXPECT_EQ(needs().expert_parts, 400);
  EXPECT_EQ(widest_input(needs()), 400);
  config.is_moe_layer[0] = false;
  EXPECT_EQ(needs().feed_forward, 300);
  EXPECT_EQ(widest_input(needs()), 450) << "hidden features of experts and shared at once";
}

TEST(MemoryPlan, NothingFits) {
  const std::vector<CacheSpec> caches(30, layer(CacheSpec::Kind::paged));
  EXPECT_EQ(largest_context(needs_of(caches), 50 * kMiB, 8192), 0);
}

}  // namespace
}  // namespace headrace
