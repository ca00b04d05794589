// Every GGUF file of the reference data, and the models in the store, open whole.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "checkpoint/checkpoint.h"
#include "tests/conformance.h"

namespace headrace {
namespace {

std::unique_ptr<Checkpoint> open_whole(const std::filesystem::path& path) {
  auto opened = open_checkpoint(path.string());
  EXPECT_TRUE(opened.ok()) << opened.error().to_string();
  if (!opened.ok()) return nullptr;
  std::unique_ptr<Checkpoint> checkpoint = std::move(opened).value();
  EXPECT_EQ(checkpoint->file_bytes(), std::filesystem::file_size(path));
  const auto tokens = checkpoint->metadata().get_strings("tokenizer.ggml.tokens");
  EXPECT_TRUE(tokens.ok() && tokens->has_value()) << path;
  if (tokens.ok() && tokens->has_value()) {
    std::cout << path.filename().string() << ": " << checkpoint->metadata().values().size()
              << " keys, " << (*tokens)->size() << " tokens, " << checkpoint->tensors().size()
              << " tensors\n";
    EXPECT_GT((*tokens)->size(), 1000u);
  }
  return checkpoint;
}

TEST(GgufConformance, EveryVocabularyFileOpensWithoutTensors) {
  const auto files = conformance::files("tokenizers", ".gguf");
  if (files.empty()) GTEST_SKIP() << "no reference data (set HEADRACE_CONFORMANCE)";
  for (const auto& path : files) {
    const auto checkpoint = open_whole(path);
    ASSERT_NE(checkpoint, nullptr);
    EXPECT_TRUE(checkpoint->tensors().empty()) << path;
    EXPECT_TRUE(checkpoint->metadata().get_string("tokenizer.ggml.model").ok());
  }
}

std::filesystem::path store_model(const std::string& name) {
  const char* home = std::getenv("HEADRACE_HOME");
  const char* user = std::getenv("HOME");
  const std::filesystem::path root =
      home != nullptr && *home != '\0'
          ? std::filesystem::path(home)
          : std::filesystem::path(user != nullptr ? user : "") / ".local/share/headrace";
  return root / "models" / name;
}

// What `tensors` counts by format, and the sum of their weights.
using Counts = std::map<std::string_view, int>;
struct Sums {
  Counts per_format;
  int64_t num_weights = 0;
  uint64_t data_bytes = 0;
};

Sums sum(const Checkpoint& checkpoint) {
  Sums sums;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    ++sums.per_format[format_traits(tensor.format).name];
    int64_t num_weights = 1;
    for (const int64_t dim : tensor.shape) num_weights *= dim;
    sums.num_weights += num_weights;
    sums.data_bytes += tensor.data.size();
    EXPECT_EQ(checkpoint.find(tensor.name), &tensor);
  }
  for (const auto& [format, count] : sums.per_format) std::cout << "  " << format << ": " << count;
  std::cout << ", " << sums.num_weights << " weights, " << sums.data_bytes << " bytes\n";
  return sums;
}

// The expected figures were read with PyPI's `gguf` package (GGUFReader).
TEST(GgufConformance, SmolLm2HasTheTensorsThatTheReferenceReaderFinds) {
  const auto path = store_model("smollm2-135m.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no model at " << path;
  const auto checkpoint = open_whole(path);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->format_name(), "GGUF v3");
  const Sums sums = sum(*checkpoint);
  EXPECT_EQ(sums.per_format, (Counts{{"F32", 61}, {"Q4_1", 210}, {"Q8_0", 1}}));
  EXPECT_EQ(sums.num_weights, 134515008);
  EXPECT_EQ(sums.data_bytes, 96576768u);
}

TEST(GgufConformance, Gemma3HasTheTensorsThatTheReferenceReaderFinds) {
  const auto path = store_model("gemma3-270m.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no model at " << path;
  const auto checkpoint = open_whole(path);
  ASSERT_NE(checkpoint, nullptr);
  EXPECT_EQ(checkpoint->format_name(), "GGUF v3");
  const Sums sums = sum(*checkpoint);
  EXPECT_EQ(sums.per_format,
            (Counts{{"F32", 109}, {"Q4_K", 27}, {"Q5_0", 81}, {"Q6_K", 9}, {"Q8_0", 10}}));
  EXPECT_EQ(sums.num_weights, 268098176);
  EXPECT_EQ(sums.data_bytes, 246587904u);
}

}  // namespace
}  // namespace headrace
