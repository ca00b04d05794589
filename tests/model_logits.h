// For tests: the logits of a model for one prompt, without an engine.
#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/cache_groups.h"
#include "model/model.h"

namespace headrace::test {

/// Logits [tokens.size()][vocab] of all positions, in one step. Keys and values are float32; at
/// most 64 tokens.
inline std::vector<float> model_logits(Model& model, std::span<const TokenId> tokens) {
  constexpr int64_t kBlockTokens = 16;
  constexpr int64_t kBlocks = 4;
  std::vector<std::unique_ptr<KvStorage>> storages;
  std::vector<std::vector<KvView>> views;
  for (const auto& group : group_layers(model.cache_specs()).groups) {
    storages.push_back(model.backend().allocate_kv({.type = KvType::f32,
                                                    .num_kv_heads = group.spec.num_kv_heads,
                                                    .head_dim = group.spec.head_dim,
                                                    .block_tokens = kBlockTokens},
                                                   group.num_layers, kBlocks));
    auto& layers = views.emplace_back();
    for (int64_t i = 0; i < group.num_layers; ++i) layers.push_back(storages.back()->layer(i));
  }
  model.reserve(kBlocks * kBlockTokens, kBlocks * kBlockTokens);
  std::vector<int32_t> blocks(static_cast<size_t>(kBlocks));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), 0);
  const std::vector<KvSequence> sequences = {{0, static_cast<int64_t>(tokens.size()), 0, blocks}};
  std::vector<StepCache> caches;
  for (const auto& layers : views) caches.push_back({layers, sequences});
  const Tensor logits = model.forward(
      {.tokens = tokens, .positions = positions, .logit_rows = positions, .caches = caches});
  std::vector<float> out(static_cast<size_t>(logits.rows * logits.cols));
  for (int64_t r = 0; r < logits.rows; ++r) {
    model.backend().read_row(logits, r,
                             std::span(out).subspan(static_cast<size_t>(r * logits.cols),
                                                    static_cast<size_t>(logits.cols)));
  }
  return out;
}

}  // namespace headrace::test
