// The KV pages of one model: a storage for each cache group, and the views that its layers use.
// Owns the pages. Must not know who owns which block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "kv/cache_group.h"
#include "model/cache_groups.h"
#include "model/model.h"

namespace headrace {

/// What the blocks of each cache group of `model` are like, in the order of group_layers().
std::vector<CacheGeometry> cache_geometries(const Model& model, int64_t block_tokens);

/// Bytes of one block of each group, over all its layers.
std::vector<uint64_t> block_bytes(const Model& model, KvType type, int64_t block_tokens);

class KvMemory {
 public:
  /// `num_blocks`: one number a cache group. Throws std::bad_alloc.
  KvMemory(Model& model, KvType type, int64_t block_tokens, std::span<const int64_t> num_blocks);

  size_t num_groups() const { return storages_.size(); }
  /// The views of a group's layers.
  std::span<const KvView> layers(size_t group) const { return views_[group]; }
  /// Copies a block, with the pages of all the group's layers, to another one.
  void copy_block(size_t group, int32_t from, int32_t to) {
    storages_[group]->copy_block(from, to);
  }
  /// Of a block of that group outside of the backend: KvStorage::read_block.
  uint64_t block_bytes(size_t group) const;
  void read_block(size_t group, int32_t block, int64_t num_tokens, std::span<std::byte> out) const {
    storages_[group]->read_block(block, num_tokens, out);
  }
  void write_block(size_t group, int32_t block, std::span<const std::byte> in) {
    storages_[group]->write_block(block, in);
  }
  size_t bytes() const;

 private:
  std::vector<std::unique_ptr<KvStorage>> storages_;
  std::vector<std::vector<KvView>> views_;
};

}  // namespace headrace
