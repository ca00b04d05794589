// Forward passes of tiny random models against the direct computation, and against themselves under
// other chunks, threads and company.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint.h"
#include "model/cache_groups.h"
#include "model/model.h"
#include "tests/direct_model.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

using test::DirectOptions;
using test::TinyModel;
using test::TinyOptions;

struct Loaded {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

Loaded load(const TinyModel& tiny, Isa isa, int num_threads) {
  const std::string path = testing::TempDir() + "forward_test.gguf";
  tiny.file.write(path);
  Loaded out;
  auto checkpoint = open_checkpoint(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().to_string();
  out.checkpoint = std::move(*checkpoint);
  out.backend = make_cpu_backend({.isa = isa, .num_threads = num_threads});
  auto model = load_model(*out.checkpoint, *out.backend, {});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  out.model = std::move(*model);
  std::filesystem::remove(path);
  return out;
}

constexpr int64_t kBlockTokens = 16;
constexpr int64_t kBlocksPerSequence = 8;

/// Sequences with fixed blocks: sequence s has blocks [s * 8, s * 8 + 8), in reverse order.
class Driver {
 public:
  Driver(Model& model, KvType type, int64_t num_sequences) : model_(model) {
    const CacheGroups groups = group_layers(model.cache_specs());
    for (const auto& group : groups.groups) {
      storages_.push_back(model.backend().allocate_kv({.type = type,
                                                       .num_kv_heads = group.spec.num_kv_heads,
                                                       .head_dim = group.spec.head_dim,
                                                       .block_tokens = kBlockTokens},
                                                      group.num_layers,
                                                      num_sequences * kBlocksPerSequence));
      auto& layers = views_.emplace_back();
      for (int64_t i = 0; i < group.num_layers; ++i) layers.push_back(storages_.back()->layer(i));
    }
    for (int64_t s = 0; s < num_sequences; ++s) {
      auto& table = tables_.emplace_back(static_cast<size_t>(kBlocksPerSequence));
      std::iota(table.rbegin(), table.rend(), static_cast<int32_t>(s * kBlocksPerSequence));
    }
    num_done_.resize(static_cast<size_t>(num_sequences));
    model.reserve(256, 256);
  }

  /// Fills all pages with NaNs, as a sequence that went wrong would leave them.
  void poison() {
    for (const auto& layers : views_) {
      for (const KvView& view : layers) {
        for (const auto& table : tables_) {
          for (const int32_t block : table) {
            std::memset(view.page(block), 0xff, view.layout.page_bytes());
          }
        }
      }
    }
  }

  struct Part {
    size_t sequence = 0;
    std::span<const TokenId> tokens;
  };

  /// Whether steps are wanted; empty: they are.
  std::function<bool()> is_unwanted;

  /// One step; the logits of all rows, in order.
  std::vector<float> step(const std::vector<Part>& parts) {
    std::vector<TokenId> tokens;
    std::vector<int32_t> positions;
    std::vector<KvSequence> sequences;
    for (const Part& part : parts) {
      int64_t& done = num_done_[part.sequence];
      const auto count = static_cast<int64_t>(part.tokens.size());
      sequences.push_back(
          {static_cast<int64_t>(tokens.size()), count, done, tables_[part.sequence]});
      tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
      for (int64_t i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(done++));
    }
    std::vector<StepCache> caches;
    for (const auto& layers : views_) caches.push_back({layers, sequences});
    std::vector<int32_t> logit_rows(tokens.size());
    std::iota(logit_rows.begin(), logit_rows.end(), 0);
    const Tensor logits = model_.forward({.tokens = tokens,
                                          .positions = positions,
                                          .logit_rows = logit_rows,
                                          .caches = caches,
                                          .is_unwanted = is_unwanted ? &is_unwanted : nullptr});
    std::vector<float> out(static_cast<size_t>(logits.rows * logits.cols));
    for (int64_t r = 0; r < logits.rows; ++r) {
      const auto begin = static_cast<size_t>(r * logits.cols);
      model_.backend().read_row(logits, r,
                                std::span(out).subspan(begin, static_cast<size_t>(logits.cols)));
    }
    return out;
  }

 private:
  Model& model_;
  std::vector<std::unique_ptr<KvStorage>> storages_;
  std::vector<std::vector<KvView>> views_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<int64_t> num_done_;
};

std::vector<TokenId> some_tokens(size_t count, int64_t vocab, size_t salt = 0) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] =
        static_cast<TokenId>((7 * i * i + 13 * i + salt * 29 + 3) % static_cast<size_t>(vocab));
  }
  return tokens;
}

std::vector<float> all_logits(const Loaded& loaded, KvType type, std::span<const TokenId> tokens,
                              size_t chunk) {
  Driver driver(*loaded.model, type, 1);
  std::vector<float> out;
  for (size_t done = 0; done < tokens.size(); done += chunk) {
    const auto part = tokens.subspan(done, std::min(chunk, tokens.size() - done));
    const auto logits = driver.step({{0, part}});
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

void expect_like_direct(const TinyModel& tiny, const DirectOptions& options) {
  const auto tokens = some_tokens(60, tiny.options.vocab);
  const auto expected = test::direct_logits(tiny, options, tokens);
  const Loaded loaded = load(tiny, Isa::reference, 2);
  // Heads of 8 features, in which 8 bits are coarse; a wrong sign or scale gives several units.
  for (const auto& [type, tolerance] : {std::pair(KvType::f32, 2e-5),
                                        {KvType::f16, 2e-2},
                                        {KvType::q8, 4e-1},
                                        {KvType::q12, 2e-1}}) {
    // What 8 bits change may make a router choose another expert.
    if (tiny.options.num_experts > 0 && type != KvType::f32) continue;
    const auto logits = all_logits(loaded, type, tokens, 60);
    double worst = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      for (size_t j = 0; j < expected[i].size(); ++j) {
        const double found = static_cast<double>(logits[i * expected[i].size() + j]);
        worst = std::max(worst, std::abs(found - expected[i][j]));
      }
    }
    EXPECT_LT(worst, tolerance) << kv_type_name(type);
  }
}

TEST(Forward, AStepThatNobodyWantsEndsBeforeTheNextLayer) {
  for (const bool is_gemma : {false, true}) {
    const Loaded loaded =
        load(test::tiny_model(is_gemma ? test::tiny_gemma3_options() : test::TinyOptions()),
             Isa::reference, 1);
    const auto tokens = some_tokens(20, loaded.model->info().vocab_size);
    Driver driver(*loaded.model, KvType::f32, 1);
    int num_asked = 0;
    driver.is_unwanted = [&] { return ++num_asked == 2; };
    EXPECT_TRUE(driver.step({{0, tokens}}).empty());
    EXPECT_EQ(num_asked, 2);
    Driver other(*loaded.model, KvType::f32, 1);
    other.is_unwanted = [] { return false; };
    EXPECT_EQ(other.step({{0, tokens}}), all_logits(loaded, KvType::f32, tokens, 20));
  }
}

TEST(Forward, LlamaIsLikeTheDirectComputation) {
  const TinyOptions options;
  expect_like_direct(test::tiny_model(options), {test::plain_frequencies(10000, 8), {}});
}

TEST(Forward, LlamaWithBiasesTiedHeadAndPartialRotation) {
  TinyOptions options;
  options.has_biases = true;
  options.has_own_head = false;
  options.rope_dims = 4;
  options.rope_base = 500;
  expect_like_direct(test::tiny_model(options), {test::plain_frequencies(500, 4), {}});
}

TEST(Forward, LlamaWithAWindow) {
  TinyOptions options;
  options.window = 5;
  expect_like_direct(test::tiny_model(options), {test::plain_frequencies(10000, 8), {}});
}

TEST(Forward, LlamaWithFrequencyDivisors) {
  TinyModel tiny = test::tiny_model({});
  tiny.add("rope_freqs.weight", {4}, {1, 1, 2.5F, 8});
  auto frequencies = test::plain_frequencies(10000, 8);
  frequencies[2] /= 2.5;
  frequencies[3] /= 8;
  expect_like_direct(tiny, {frequencies, {}});
}

TEST(Forward, LlamaWithYarn) {
  TinyModel tiny = test::tiny_metadata({});
  tiny.file.add("llama.rope.scaling.type", "yarn");
  tiny.file.add("llama.rope.scaling.factor", 4.0F);
  tiny.file.add("llama.rope.scaling.original_context_length", uint32_t{64});
  test::add_tiny_tensors(tiny);
  // 8 dims, base 10000: pairs that turn 32 times and once over 64 tokens are -0.5 and 1.008, so the
  // ramp runs from 0 to 2: pair 0 is kept, pair 1 is half way, pairs 2 and 3 are interpolated.
  auto frequencies = test::plain_frequencies(10000, 8);
  frequencies[1] *= 0.5 + 0.5 / 4;
  frequencies[2] /= 4;
  frequencies[3] /= 4;
  expect_like_direct(tiny, {frequencies, {}, 0.1 * std::log(4.0) + 1});
}

TEST(Forward, ExpertsAreLikeTheDirectComputation) {
  std::vector<TinyOptions> variants(6, test::tiny_moe_options());
  variants[1].has_stacked_experts = false;
  variants[1].has_biases = true;
  variants[2].num_active = 1;
  variants[2].normalises = false;
  variants[2].has_shared_gate = false;
  variants[3].num_active = variants[3].num_experts;
  variants[3].shared_length = 0;
  variants[4].num_dense_layers = 0;
  variants[4].shared_length = 0;
  variants[4].num_experts = 9;
  variants[4].num_active = 3;
  variants[5].num_experts = variants[5].num_active = 1;
  for (const TinyOptions& options : variants) {
    SCOPED_TRACE(std::to_string(options.num_active) + " of " + std::to_string(options.num_experts));
    expect_like_direct(test::tiny_model(options), {test::plain_frequencies(10000, 8), {}});
  }
}

TEST(Forward, Gemma3IsLikeTheDirectComputation) {
  const TinyOptions options = test::tiny_gemma3_options();
  expect_like_direct(test::tiny_model(options),
                     {test::plain_frequencies(1000000, 16), test::plain_frequencies(10000, 16)});
}

TEST(Forward, Gemma3WithLinearScalingAndSoftCap) {
  TinyOptions options = test::tiny_gemma3_options();
  options.final_soft_cap = 3;
  TinyModel tiny = test::tiny_metadata(options);
  tiny.file.add("gemma3.rope.scaling.type", "linear");
  tiny.file.add("gemma3.rope.scaling.factor", 8.0F);
  test::add_tiny_tensors(tiny);
  auto frequencies = test::plain_frequencies(1000000, 16);
  for (double& frequency : frequencies) frequency /= 8;
  expect_like_direct(tiny, {frequencies, test::plain_frequencies(10000, 16)});
}

bool bit_equal(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Models wide enough for every kernel's main loop and tail.
std::vector<TinyOptions> invariance_models() {
  TinyOptions llama;
  llama.embedding = 96;
  llama.feed_forward = 160;
  llama.num_heads = 6;
  llama.num_kv_heads = 2;
  llama.head_dim = 16;
  llama.rope_dims = 16;
  llama.vocab = 101;
  TinyOptions gemma = test::tiny_gemma3_options();
  gemma.embedding = 64;
  gemma.feed_forward = 96;
  TinyOptions moe = llama;
  moe.num_experts = 7;
  moe.num_active = 3;
  moe.expert_length = 80;
  moe.shared_length = 96;
  moe.has_shared_gate = true;
  return {llama, gemma, moe};
}

class Invariance : public testing::TestWithParam<Isa> {};

TEST_P(Invariance, ThreadsAndChunks) {
  for (const TinyOptions& options : invariance_models()) {
    const TinyModel tiny = test::tiny_model(options);
    const auto tokens = some_tokens(120, options.vocab);
    for (const KvType type : kKvTypes) {
      const auto expected = all_logits(load(tiny, GetParam(), 1), type, tokens, tokens.size());
      for (const int num_threads : {1, 2, 3, 4}) {
        const Loaded loaded = load(tiny, GetParam(), num_threads);
        for (const size_t chunk : {1, 7, 33, 64, 120}) {
          EXPECT_TRUE(bit_equal(all_logits(loaded, type, tokens, chunk), expected))
              << options.architecture << ", " << kv_type_name(type) << ", " << num_threads
              << " threads, chunks of " << chunk;
        }
      }
    }
  }
}

TEST_P(Invariance, WhatAPageHeldBefore) {
  for (const TinyOptions& options : invariance_models()) {
    const Loaded loaded = load(test::tiny_model(options), GetParam(), 2);
    const auto tokens = some_tokens(37, options.vocab);
    for (const KvType type : kKvTypes) {
      const auto expected = all_logits(loaded, type, tokens, tokens.size());
      for (const size_t chunk : {1, 37}) {
        Driver driver(*loaded.model, type, 1);
        driver.poison();
        std::vector<float> out;
        for (size_t done = 0; done < tokens.size(); done += chunk) {
          const auto logits = driver.step({{0, std::span(tokens).subspan(done, chunk)}});
          out.insert(out.end(), logits.begin(), logits.end());
        }
        EXPECT_TRUE(bit_equal(out, expected)) << options.architecture << ", " << kv_type_name(type);
      }
    }
  }
}

TEST_P(Invariance, Company) {
  for (const TinyOptions& options : invariance_models()) {
    const Loaded loaded = load(test::tiny_model(options), GetParam(), 2);
    const auto vocab = static_cast<size_t>(options.vocab);
    constexpr size_t kSequences = 5;
    std::vector<std::vector<TokenId>> prompts;
    std::vector<std::vector<float>> alone;
    for (size_t s = 0; s < kSequences; ++s) {
      prompts.push_back(some_tokens(40 + 9 * s, options.vocab, s));
      alone.push_back(all_logits(loaded, KvType::f16, prompts[s], prompts[s].size()));
    }
    // All together: sequence s brings s * 4 + 1 tokens a step.
    Driver driver(*loaded.model, KvType::f16, kSequences);
    std::vector<std::vector<float>> together(kSequences);
    std::vector<size_t> done(kSequences);
    for (bool any = true; any;) {
      any = false;
      std::vector<Driver::Part> parts;
      for (size_t s = 0; s < kSequences; ++s) {
        const size_t count = std::min(s * 4 + 1, prompts[s].size() - done[s]);
        if (count == 0) continue;
        parts.push_back({s, std::span(prompts[s]).subspan(done[s], count)});
        done[s] += count;
        any = true;
      }
      if (!any) break;
      const auto logits = driver.step(parts);
      size_t at = 0;
      for (const auto& part : parts) {
        const size_t size = part.tokens.size() * vocab;
        auto& own = together[part.sequence];
        own.insert(own.end(), logits.begin() + static_cast<std::ptrdiff_t>(at),
                   logits.begin() + static_cast<std::ptrdiff_t>(at + size));
        at += size;
      }
    }
    for (size_t s = 0; s < kSequences; ++s) {
      EXPECT_TRUE(bit_equal(together[s], alone[s])) << options.architecture << " sequence " << s;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Invariance, testing::ValuesIn(available_isas()),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace headrace
