// Attention over pages, on every instruction set: against double precision, and bit for bit
// whatever the chunks, the threads and the other sequences.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/attention.h"
#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

struct Case {
  std::string name;
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;
  int64_t head_dim = 64;
  int64_t num_tokens = 100;
  KvType type = KvType::f32;
  int64_t block_tokens = 16;
  int64_t window = 0;
  float soft_cap = 0.0F;
  bool causal = true;
};

std::vector<Case> cases() {
  return {
      {"one_head", 1, 1, 32, 1},
      {"groups_of_three", 9, 3, 64, 150},
      {"one_kv_head", 4, 1, 256, 70},
      {"f16", 9, 3, 64, 200, KvType::f16, 32},
      {"head_of_80", 2, 2, 80, 40, KvType::f16},
      {"head_of_96", 6, 2, 96, 140},
      {"head_of_20", 2, 1, 20, 35, KvType::f16},
      {"window", 4, 1, 64, 300, KvType::f32, 16, 48},
      {"window_of_one", 2, 2, 32, 40, KvType::f32, 16, 1},
      {"soft_cap", 4, 2, 128, 60, KvType::f32, 16, 0, 5.0F},
      {"bidirectional", 4, 2, 64, 90, KvType::f32, 16, 0, 0.0F, false},
      {"many_heads_to_one", 40, 1, 32, 50},
      {"two_segments", 3, 1, 64, 1100, KvType::f16, 32},
      {"window_over_segments", 2, 1, 32, 1200, KvType::f16, 16, 600},
  };
}

AttentionParams params_of(const Case& c) {
  AttentionParams params;
  params.num_heads = c.num_heads;
  params.num_kv_heads = c.num_kv_heads;
  params.head_dim = c.head_dim;
  params.scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  params.soft_cap = c.soft_cap;
  params.window = c.window;
  params.causal = c.causal;
  return params;
}

/// A sequence's inputs, and blocks in an order that is not their own.
struct Scene {
  explicit Scene(const Case& c, uint64_t seed = 1)
      : q(random_rows(c.num_tokens, c.num_heads * c.head_dim, seed, 3.0F)),
        k(random_rows(c.num_tokens, c.num_kv_heads * c.head_dim, seed + 100, 3.0F)),
        v(random_rows(c.num_tokens, c.num_kv_heads * c.head_dim, seed + 200)),
        layout{c.type, c.num_kv_heads, c.head_dim, c.block_tokens} {
    const auto num_blocks = static_cast<int32_t>(ceil_div(c.num_tokens, c.block_tokens));
    for (int32_t i = 0; i < num_blocks; ++i) blocks.push_back(num_blocks - 1 - i);
  }
  Buffer q, k, v;
  KvPageLayout layout;
  std::vector<int32_t> blocks;
};

/// Feeds the scene in chunks; every page is first filled with NaN, as stale memory might be.
std::vector<float> run(Backend& backend, const Case& c, const Scene& scene, int64_t chunk) {
  const auto storage =
      backend.allocate_kv(scene.layout, 2, static_cast<int64_t>(scene.blocks.size()));
  const KvView view = storage->layer(1);
  for (const int32_t block : scene.blocks) {
    std::memset(view.page(block), 0xff, scene.layout.page_bytes());
  }
  const Buffer out = backend.allocate(DType::f32, c.num_tokens, scene.q.view().cols);
  for (int64_t begin = 0; begin < c.num_tokens; begin += chunk) {
    const int64_t n = std::min(chunk, c.num_tokens - begin);
    const KvSequence sequence{0, n, begin, scene.blocks};
    backend.kv_write(scene.k.view().slice_rows(begin, n), scene.v.view().slice_rows(begin, n), view,
                     std::span(&sequence, 1));
    backend.attention(scene.q.view().slice_rows(begin, n), view, params_of(c),
                      std::span(&sequence, 1), out.view().slice_rows(begin, n));
  }
  return to_vector(out.view());
}

/// What the cache holds of a number.
double cached(const Case& c, float x) {
  return c.type == KvType::f32 ? x : f16_to_f32(f32_to_f16(x));
}

std::vector<double> plain_attention(const Case& c, const Scene& scene) {
  const AttentionParams params = params_of(c);
  const int64_t group = c.num_heads / c.num_kv_heads;
  std::vector<double> out;
  for (int64_t i = 0; i < c.num_tokens; ++i) {
    for (int64_t head = 0; head < c.num_heads; ++head) {
      const int64_t at = head / group * c.head_dim;
      const int64_t hi = c.causal ? i + 1 : c.num_tokens;
      const int64_t lo = c.window > 0 ? std::max<int64_t>(0, i - c.window + 1) : 0;
      std::vector<double> values(static_cast<size_t>(c.head_dim), 0.0);
      std::vector<double> weights;
      double largest = -1e300;
      for (int64_t j = lo; j < hi; ++j) {
        double score = 0;
        for (int64_t d = 0; d < c.head_dim; ++d) {
          score += static_cast<double>(scene.q.view().f32(i)[head * c.head_dim + d]) *
                   cached(c, scene.k.view().f32(j)[at + d]);
        }
        score *= params.scale;
        if (c.soft_cap > 0) score = c.soft_cap * std::tanh(score / c.soft_cap);
        weights.push_back(score);
        largest = std::max(largest, score);
      }
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - largest);
      for (int64_t j = lo; j < hi; ++j) {
        for (int64_t d = 0; d < c.head_dim; ++d) {
          values[static_cast<size_t>(d)] +=
              weights[static_cast<size_t>(j - lo)] / sum * cached(c, scene.v.view().f32(j)[at + d]);
        }
      }
      out.insert(out.end(), values.begin(), values.end());
    }
  }
  return out;
}

class AttentionOnIsa : public testing::TestWithParam<Isa> {};

TEST_P(AttentionOnIsa, IsNearDoublePrecision) {
  const auto backend = backend_of(GetParam());
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const Scene scene(c);
    const auto expected = plain_attention(c, scene);
    const auto found = run(*backend, c, scene, c.num_tokens);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 5e-6) << "element " << i;
    }
  }
}

TEST_P(AttentionOnIsa, ChunksAndThreadsDoNotChangeABit) {
  for (const Case& c : cases()) {
    if (!c.causal) continue;  // what a token sees then depends on the chunk
    SCOPED_TRACE(c.name);
    const Scene scene(c);
    const auto one = backend_of(GetParam(), 1);
    const auto expected = run(*one, c, scene, c.num_tokens);
    for (const int num_threads : {1, 2, 4}) {
      const auto backend = backend_of(GetParam(), num_threads);
      for (const int64_t chunk : {1, 7, 64, 256}) {
        if (chunk == 1 && num_threads != 2) continue;  // slow, and 7 shows as much
        ASSERT_TRUE(same_bits(run(*backend, c, scene, chunk), expected))
            << "chunks of " << chunk << ", " << num_threads << " threads";
      }
    }
  }
}

TEST_P(AttentionOnIsa, SequencesInOneStepDoNotSeeEachOther) {
  const Case c{"", 6, 2, 64, 40};
  const auto backend = backend_of(GetParam(), 2);
  const Scene first(c, 1);
  const Scene second(c, 2);
  // The second sequence uses blocks 3, 4, 5 of one storage, and comes first in the step.
  const auto storage = backend->allocate_kv(first.layout, 1, 6);
  const std::vector<int32_t> first_blocks = {2, 0, 1};
  const std::vector<int32_t> second_blocks = {5, 3, 4};
  const auto both = [&](const Buffer& a, const Buffer& b) {
    Buffer joined(DType::f32, 80, a.view().cols);
    std::copy_n(b.view().f32(), 40 * a.view().cols, joined.view().f32());
    std::copy_n(a.view().f32(), 40 * a.view().cols, joined.view().f32(40));
    return joined;
  };
  const Buffer q = both(first.q, second.q);
  const Buffer k = both(first.k, second.k);
  const Buffer v = both(first.v, second.v);
  const std::vector<KvSequence> sequences = {{0, 40, 0, second_blocks}, {40, 40, 0, first_blocks}};
  const Buffer out = backend->allocate(DType::f32, 80, q.view().cols);
  backend->kv_write(k.view(), v.view(), storage->layer(0), sequences);
  backend->attention(q.view(), storage->layer(0), params_of(c), sequences, out.view());
  const auto expected_second = run(*backend, c, second, 40);
  const auto expected_first = run(*backend, c, first, 40);
  EXPECT_TRUE(same_bits(to_vector(out.view().slice_rows(0, 40)), expected_second));
  EXPECT_TRUE(same_bits(to_vector(out.view().slice_rows(40, 40)), expected_first));
}

TEST_P(AttentionOnIsa, BlocksBehindTheWindowAreNotRead) {
  Case c{"", 2, 1, 32, 200};
  c.window = 20;
  const auto backend = backend_of(GetParam(), 2);
  Scene scene(c);
  const auto expected = run(*backend, c, scene, 200);
  const auto storage = backend->allocate_kv(scene.layout, 1, 13);
  const KvSequence all{0, 200, 0, scene.blocks};
  backend->kv_write(scene.k.view(), scene.v.view(), storage->layer(0), std::span(&all, 1));
  for (size_t i = 0; i < 11; ++i) scene.blocks[i] = kNoBlock;
  const KvSequence last{0, 1, 199, scene.blocks};
  const Buffer out = backend->allocate(DType::f32, 1, 64);
  backend->attention(scene.q.view().slice_rows(199, 1), storage->layer(0), params_of(c),
                     std::span(&last, 1), out.view());
  EXPECT_TRUE(same_bits(to_vector(out.view()), std::span(expected).subspan(199 * 64)));
}

// More segments than run at once. Four sequences of it are run by tiles where one is run by
// segments.
TEST_P(AttentionOnIsa, LongContextsTakeLittleMemoryAndTheSameBits) {
  const Case c{"", 3, 1, 32, 40000, KvType::f16, 32};
  const Scene scene(c);
  const auto storage = backend_of(GetParam(), 1)->allocate_kv(scene.layout, 1, 1250);
  const KvSequence all{0, 40000, 0, scene.blocks};
  CpuContext writer(kernel_table(GetParam()), 1);
  cpu_kv_write(writer, scene.k.view(), scene.v.view(), storage->layer(0), std::span(&all, 1));
  const Tensor last = scene.q.view().slice_rows(39999, 1);
  std::vector<float> expected;
  for (const int num_threads : {1, 2, 4}) {
    CpuContext context(kernel_table(GetParam()), num_threads);
    Buffer out(DType::f32, 1, last.cols);
    const KvSequence one{0, 1, 39999, scene.blocks};
    cpu_attention(context, last, storage->layer(0), params_of(c), std::span(&one, 1), out.view());
    EXPECT_LT(context.scratch_size(), static_cast<size_t>(5000 * num_threads)) << "floats";
    if (expected.empty()) expected = to_vector(out.view());
    EXPECT_TRUE(same_bits(to_vector(out.view()), expected)) << num_threads << " threads";
  }
  CpuContext context(kernel_table(GetParam()), 1);
  Buffer q(DType::f32, 4, last.cols);
  Buffer out(DType::f32, 4, last.cols);
  std::vector<KvSequence> sequences;
  for (int64_t i = 0; i < 4; ++i) {
    std::copy_n(last.f32(), last.cols, q.view().f32(i));
    sequences.push_back({i, 1, 39999, scene.blocks});
  }
  cpu_attention(context, q.view(), storage->layer(0), params_of(c), sequences, out.view());
  EXPECT_TRUE(same_bits(to_vector(out.view().slice_rows(2, 1)), expected)) << "by tiles";
}

TEST_P(AttentionOnIsa, LargeValuesSaturateInF16) {
  Case c{"", 1, 1, 32, 1, KvType::f16};
  const auto backend = backend_of(GetParam(), 1);
  Scene scene(c);
  scene.v.view().f32()[0] = 1e6F;
  scene.v.view().f32()[1] = -1e6F;
  const auto out = run(*backend, c, scene, 1);
  EXPECT_EQ(out[0], 65504.0F);
  EXPECT_EQ(out[1], -65504.0F);
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionOnIsa, testing::ValuesIn(available_isas()),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace headrace
