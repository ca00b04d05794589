// See kv_memory.h.
#include "engine/kv_memory.h"

#include "base/check.h"

namespace headrace {
namespace {

KvPageLayout page_layout(const CacheSpec& spec, KvType type, int64_t block_tokens) {
  return {.type = type,
          .num_kv_heads = spec.num_kv_heads,
          .head_dim = spec.head_dim,
          .block_tokens = block_tokens};
}

}  // namespace

std::vector<CacheGeometry> cache_geometries(const Model& model, int64_t block_tokens) {
  std::vector<CacheGeometry> out;
  for (const auto& group : group_layers(model.cache_specs()).groups) {
    out.push_back({.block_tokens = block_tokens, .window = group.spec.window});
  }
  return out;
}

std::vector<uint64_t> block_bytes(const Model& model, KvType type, int64_t block_tokens) {
  std::vector<uint64_t> out;
  for (const auto& group : group_layers(model.cache_specs()).groups) {
    out.push_back(page_layout(group.spec, type, block_tokens).page_bytes() *
                  static_cast<uint64_t>(group.num_layers));
  }
  return out;
}

KvMemory::KvMemory(Model& model, KvType type, int64_t block_tokens,
                   std::span<const int64_t> num_blocks) {
  const CacheGroups groups = group_layers(model.cache_specs());
  HEADRACE_CHECK_EQ(groups.groups.size(), num_blocks.size());
  for (size_t i = 0; i < num_blocks.size(); ++i) {
    const auto& group = groups.groups[i];
    storages_.push_back(model.backend().allocate_kv(page_layout(group.spec, type, block_tokens),
                                                    group.num_layers, num_blocks[i]));
    auto& views = views_.emplace_back();
    for (int64_t layer = 0; layer < group.num_layers; ++layer) {
      views.push_back(storages_.back()->layer(layer));
    }
  }
}

uint64_t KvMemory::block_bytes(size_t group) const {
  const auto& views = views_[group];
  return views.size() * (views.empty() ? 0 : views.front().layout.page_bytes());
}

size_t KvMemory::bytes() const {
  size_t total = 0;
  for (const auto& storage : storages_) total += storage->bytes();
  return total;
}

}  // namespace headrace
