#include "app/weight_needs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tiny_models.h"

namespace headrace {
namespace {

TEST(WeightNeeds, WhatStaysInTheFileTakesScratchOnly) {
  const std::string path = testing::TempDir() + "weight_needs_test.gguf";
  const test::TinyModel tiny = test::tiny_model({});
  tiny.file.write(path);
  const auto checkpoint = std::move(open_checkpoint(path).value());
  std::filesystem::remove(path);
  uint64_t matrices = 0;
  uint64_t vectors = 0;
  for (const auto& [name, tensor] : tiny.tensors) {
    (tensor.shape.size() > 1 ? matrices : vectors) += 4 * tensor.values.size();
  }

  MemoryNeeds needs;
  set_weight_needs(needs, *checkpoint, {.pack = false, .num_threads = 3});
  EXPECT_EQ(needs.weight_bytes, vectors);
  EXPECT_EQ(needs.file_bytes, matrices);
  EXPECT_EQ(needs.scratch_bytes, 3U * 33 * 4 * 48);  // the widest row has 48 columns
  const MemoryNeeds none;
  EXPECT_EQ(total_bytes(needs, 1), total_bytes(none, 1) + vectors + needs.scratch_bytes);

  set_weight_needs(needs, *checkpoint, {.num_threads = 3});
  EXPECT_EQ(needs.weight_bytes, vectors + matrices);
  EXPECT_EQ(needs.file_bytes, 0U);
  EXPECT_EQ(needs.scratch_bytes, 0U);
}

TEST(WeightNeeds, ThePathOfFloatsDecodes) {
  const std::string path = testing::TempDir() + "weight_needs_test.gguf";
  test::GgufBuilder file;
  file.add("general.architecture", "llama");
  file.add_tensor("a", 2, {3, 64}, std::string(3 * 2 * 18, 'x'));  // Q4_0
  file.write(path);
  const auto checkpoint = std::move(open_checkpoint(path).value());
  std::filesystem::remove(path);
  MemoryNeeds needs;
  set_weight_needs(needs, *checkpoint, {});
  EXPECT_EQ(needs.weight_bytes, 3U * 2 * 18);
  set_weight_needs(needs, *checkpoint, {.as_floats = true});
  EXPECT_EQ(needs.weight_bytes, 3U * 64 * 4);
}

}  // namespace
}  // namespace headrace
