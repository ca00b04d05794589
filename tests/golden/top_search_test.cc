// The largest logits of real models, found by searching the output head's upper bits, are those of
// the full head in every step of a long generation, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>

#include "engine/kv_memory.h"
#include "golden/golden_data.h"

namespace headrace::golden {
namespace {

constexpr int64_t kBlockTokens = 16;
constexpr int64_t kSteps = 200;

/// One sequence, whose steps can be run again.
class Generation {
 public:
  Generation(Model& model, int64_t max_tokens) : model_(model) {
    blocks_.resize(static_cast<size_t>((max_tokens + kBlockTokens - 1) / kBlockTokens));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    const size_t groups = cache_geometries(model, kBlockTokens).size();
    memory_ = std::make_unique<KvMemory>(
        model, kDefaultKvType, kBlockTokens,
        std::vector<int64_t>(groups, static_cast<int64_t>(blocks_.size())));
    model.reserve(max_tokens, 1);
  }

  /// The logits after `tokens`, which come after `num_before` others.
  std::vector<float> step(std::span<const TokenId> tokens, int64_t num_before, int32_t num_top) {
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(num_before));
    const auto rows = static_cast<int64_t>(tokens.size());
    const std::array sequences = {KvSequence{0, rows, num_before, blocks_}};
    std::vector<StepCache> caches;
    for (size_t i = 0; i < memory_->num_groups(); ++i) {
      caches.push_back({memory_->layers(i), sequences});
    }
    const std::array last = {static_cast<int32_t>(rows - 1)};
    const Tensor logits = model_.forward({.tokens = tokens,
                                          .positions = positions,
                                          .logit_rows = last,
                                          .caches = caches,
                                          .num_top = num_top});
    return {logits.f32(), logits.f32() + logits.cols};
  }

 private:
  Model& model_;
  std::vector<int32_t> blocks_;
  std::unique_ptr<KvMemory> memory_;
};

/// How many logits were left out; the others, and all that count, are the same bits.
int64_t check_top(const std::vector<float>& found, const std::vector<float>& all, int32_t num_top) {
  std::vector<float> sorted(all);
  const auto nth = sorted.begin() + num_top - 1;
  std::nth_element(sorted.begin(), nth, sorted.end(), std::greater<>());
  int64_t left_out = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::memcmp(&found[i], &all[i], sizeof(float)) == 0) continue;
    EXPECT_TRUE(std::isinf(found[i]) && found[i] < 0) << i;
    EXPECT_LT(all[i], *nth) << i;
    ++left_out;
  }
  return left_out;
}

TEST(TopSearchOfModels, IsTheFullHeadInEveryStep) {
  int num_models = 0;
  for (const GoldenModel& golden : golden_models()) {
    const auto path = model_path(golden.file);
    if (!std::filesystem::exists(path)) continue;
    ++num_models;
    for (const Isa isa : available_isas()) {
      if (isa == Isa::reference) continue;  // has no packed head
      SCOPED_TRACE(golden.reference + " " + std::string(isa_name(isa)));
      const LoadedModel loaded = load(path, isa, 0);
      Generation generation(*loaded.model, kSteps + kBlockTokens);
      std::vector<TokenId> tokens = {2, 1000, 3000, 500, 700};
      int64_t num_before = 0;
      constexpr std::array kTops = {1, 40};
      std::array<int64_t, kTops.size()> num_searched = {};
      for (int64_t step = 0; step < kSteps; ++step) {
        const auto all = generation.step(tokens, num_before, 0);
        for (size_t i = 0; i < kTops.size(); ++i) {
          const auto found = generation.step(tokens, num_before, kTops[i]);
          if (check_top(found, all, kTops[i]) > 0) ++num_searched[i];
        }
        num_before += static_cast<int64_t>(tokens.size());
        // One of the likely tokens, so that the text does not run in a circle.
        std::vector<TokenId> ids(all.size());
        std::iota(ids.begin(), ids.end(), 0);
        const auto likely = [&](TokenId a, TokenId b) { return all[a] > all[b]; };
        std::partial_sort(ids.begin(), ids.begin() + 4, ids.end(), likely);
        tokens = {ids[static_cast<size_t>(step % 4)]};
      }
      std::printf("%s %s: of %d steps, %d left logits out for the largest, %d for the 40 largest\n",
                  golden.reference.c_str(), loaded.backend->description().c_str(),
                  static_cast<int>(kSteps), static_cast<int>(num_searched[0]),
                  static_cast<int>(num_searched[1]));
      const auto weights = loaded.model->weight_work();
      if (weights.top_bytes == weights.head_bytes) continue;  // this head is not searched
      EXPECT_GT(num_searched[0], kSteps / 2);
    }
  }
  if (num_models == 0) GTEST_SKIP() << "no models";
}

}  // namespace
}  // namespace headrace::golden
