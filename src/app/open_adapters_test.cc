// Models that are opened with adapters: what the memory plan says, and whose file an error names.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "app/open_stages.h"
#include "tests/gguf_builder.h"
#include "tests/tiny_model_file.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kRank = 3;
constexpr int64_t kEmbedding = 32;
constexpr int64_t kVocab = 256;

class OpenAdapters : public testing::Test {
 protected:
  OpenAdapters() { fs::create_directories(folder_); }
  ~OpenAdapters() override { fs::remove_all(folder_); }

  /// An adapter of one weight.
  std::string write(const std::string& weight, int64_t rows,
                    const std::string& architecture = "llama") const {
    test::GgufBuilder file;
    file.add("general.architecture", architecture);
    file.add("general.type", "adapter");
    file.add("adapter.type", "lora");
    const auto zeros = [](int64_t count) {
      return std::vector<float>(static_cast<size_t>(count), 0.0F);
    };
    file.add_f32(weight + ".weight.lora_a", {kRank, kEmbedding}, zeros(kRank * kEmbedding));
    file.add_f32(weight + ".weight.lora_b", {rows, kRank}, zeros(rows * kRank));
    const std::string name = (folder_ / "adapter.gguf").string();
    file.write(name);
    return name;
  }

  static OpenOptions with(const std::vector<std::string>& adapters) {
    OpenOptions options;
    options.num_threads = 1;
    options.chunk_tokens = 1;
    options.memory_bytes = uint64_t{1} << 30;
    for (const std::string& path : adapters) options.adapters.push_back({"", path});
    return options;
  }

  MemoryNeeds needs(const std::vector<std::string>& adapters) const {
    return std::move(begin_opening(model_.path(), with(adapters)).value().needs);
  }

  /// What steps of one row take for an adapter of the head.
  static uint64_t scratch_bytes(int64_t logit_rows) {
    const int64_t low = kMostAdapted * kRank;
    return static_cast<uint64_t>(low + logit_rows * (kRank + kVocab)) * sizeof(float);
  }

  Error error_of(const std::string& adapter) const {
    const auto opened = open_model(model_.path(), with({adapter}));
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error() : opened.error();
  }

  /// The error names the adapter's file first and no model.
  void expect_names(const std::string& adapter) const {
    const Error error = error_of(adapter);
    EXPECT_TRUE(error.where.starts_with(adapter)) << error.to_string();
    EXPECT_EQ(error.to_string().find(model_.path()), std::string::npos) << error.to_string();
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "open_adapters_test";
  const test::ModelFile model_{"open_adapters_model", test::TinyOptions()};
};

TEST_F(OpenAdapters, TheHeadsScratchIsPlanned) {
  MemoryNeeds plain = needs({});
  MemoryNeeds adapted = needs({write("output", kVocab)});
  EXPECT_EQ(plain.adapter_bytes, 0U);
  EXPECT_GE(adapted.adapter_bytes, sizeof(float) * kRank * (kVocab + kEmbedding));
  EXPECT_EQ(adapted.weight_bytes, plain.weight_bytes);
  for (const int64_t rows : {1, 7}) {
    plain.logit_rows = adapted.logit_rows = rows;
    EXPECT_EQ(activation_bytes(adapted) - activation_bytes(plain), scratch_bytes(rows));
    EXPECT_EQ(total_bytes(adapted, 16) - total_bytes(plain, 16),
              adapted.adapter_bytes + scratch_bytes(rows));
  }
}

TEST_F(OpenAdapters, WhatTheyTakeIsLeftOutOfTheCache) {
  const auto plain = std::move(open_model(model_.path(), with({})).value());
  const auto adapted =
      std::move(open_model(model_.path(), with({write("output", kVocab)})).value());
  ASSERT_EQ(adapted->model->info().adapters.size(), 1U);
  EXPECT_EQ(plain->kv_budget_bytes - adapted->kv_budget_bytes,
            adapted->model->info().adapters[0].weight_bytes + scratch_bytes(1));
}

TEST_F(OpenAdapters, ErrorsNameTheAdaptersFile) {
  expect_names((folder_ / "absent.gguf").string());
  expect_names(folder_.string());
  expect_names(folder_.string() + "/");
  expect_names(write("output", kVocab, "gemma3"));
  expect_names(write("output", kVocab - 1));  // which loading finds out
  expect_names(write("blk.9.attn_q", kEmbedding));
}

TEST_F(OpenAdapters, ErrorsOfTheModelNameTheModel) {
  const auto opened = open_model("/no/such.gguf", with({write("output", kVocab)}));
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(opened.error().where.starts_with("/no/such.gguf")) << opened.error().to_string();
}

}  // namespace
}  // namespace headrace
