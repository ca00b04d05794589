// Blocks given out and taken in: the same bits in another storage, and nothing of what a block held
// before.
#include "backend/cpu/kv_storage.h"

#include <gtest/gtest.h>

#include "backend/cpu/attention_scene.h"

namespace headrace {
namespace {

using namespace backend_test;

std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> out;
  for (const KvType type : kKvTypes) {
    for (const int64_t head_dim : {20, 64, 80, 128, 300}) {
      for (const int64_t block_tokens : {16, 48}) {
        out.push_back({std::string(kv_type_name(type)) + " " + std::to_string(head_dim), 2, 2,
                       head_dim, block_tokens, type, block_tokens});
      }
    }
  }
  return out;
}

/// Writes the first `num_tokens` of a scene to a block of all layers.
void write(Backend& backend, const Scene& scene, const KvStorage& storage, int64_t num_layers,
           int32_t block, int64_t num_tokens) {
  const KvSequence sequence{0, num_tokens, 0, std::span(&block, 1)};
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    backend.kv_write(scene.k.view().slice_rows(0, num_tokens),
                     scene.v.view().slice_rows(0, num_tokens), storage.layer(layer),
                     std::span(&sequence, 1));
  }
}

std::vector<std::byte> read(const KvStorage& storage, const KvPageLayout& layout,
                            int64_t num_layers, int32_t block, int64_t num_tokens) {
  std::vector<std::byte> out(static_cast<size_t>(num_layers) * layout.page_bytes(),
                             std::byte{0x55});
  storage.read_block(block, num_tokens, out);
  return out;
}

TEST(KvBlocks, WhatABlockHeldBeforeIsNotGivenOut) {
  const auto backend = make_cpu_backend({.isa = available_isas().back(), .num_threads = 1});
  for (const AttentionCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const Scene scene(c, 1);
    const Scene earlier(c, 2);
    for (const int64_t num_tokens : {int64_t{0}, int64_t{1}, int64_t{7}, c.block_tokens - 1}) {
      const auto fresh = backend->allocate_kv(scene.layout, 2, 1);
      const auto used = backend->allocate_kv(scene.layout, 2, 1);
      write(*backend, earlier, *used, 2, 0, c.block_tokens);
      if (num_tokens > 0) {
        write(*backend, scene, *used, 2, 0, num_tokens);
        write(*backend, scene, *fresh, 2, 0, num_tokens);
      }
      EXPECT_TRUE(read(*used, scene.layout, 2, 0, num_tokens) ==
                  read(*fresh, scene.layout, 2, 0, c.block_tokens))
          << num_tokens << " tokens";
    }
  }
}

TEST(KvBlocks, GoFromOneStorageToAnother) {
  const auto backend = make_cpu_backend({.isa = available_isas().back(), .num_threads = 1});
  for (const AttentionCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const Scene scene(c, 1);
    const auto from = backend->allocate_kv(scene.layout, 3, 4);
    const auto to = backend->allocate_kv(scene.layout, 3, 2);
    write(*backend, scene, *from, 3, 2, c.block_tokens);
    const auto block = read(*from, scene.layout, 3, 2, c.block_tokens);
    to->write_block(1, block);
    for (int64_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(std::memcmp(to->layer(layer).page(1), from->layer(layer).page(2),
                            scene.layout.page_bytes()),
                0);
    }
    EXPECT_TRUE(read(*to, scene.layout, 3, 1, c.block_tokens) == block);
    const auto untouched = read(*to, scene.layout, 3, 0, c.block_tokens);
    EXPECT_TRUE(std::all_of(untouched.begin(), untouched.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(KvBlocks, OfAnotherSizeAreABug) {
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  const KvPageLayout layout{KvType::f32, 1, 16, 16};
  const auto storage = backend->allocate_kv(layout, 2, 2);
  std::vector<std::byte> bytes(2 * layout.page_bytes());
  EXPECT_THROW(storage->write_block(2, bytes), InternalError);
  EXPECT_THROW(storage->read_block(0, 17, bytes), InternalError);
  bytes.pop_back();
  EXPECT_THROW(storage->write_block(0, bytes), InternalError);
  EXPECT_THROW(storage->read_block(0, 16, bytes), InternalError);
}

}  // namespace
}  // namespace headrace
