#include "app/model_fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/gguf_builder.h"

namespace headrace {
namespace {

using test::GgufBuilder;

struct Described {
  std::string name = "tiny";
  uint32_t layers = 2;
  std::string word = "a";
  std::vector<float> small = {1, 2, 3, 4};
  std::vector<float> large = std::vector<float>(64 * 1024, 0.5F);  // 256 KiB
  std::string large_name = "large.weight";
  bool is_reordered = false;
};

std::string fingerprint_of(const Described& described) {
  GgufBuilder builder;
  builder.add("general.architecture", "llama").add("general.name", described.name);
  builder.add("llama.block_count", described.layers);
  builder.add("llama.flags", std::vector<bool>{true, false});
  builder.add("llama.rope.scale", 0.25F);
  builder.add("tokenizer.ggml.tokens", std::vector<std::string>{described.word});
  const auto add_small = [&] { builder.add_f32("small.weight", {2, 2}, described.small); };
  if (!described.is_reordered) add_small();
  builder.add_f32(described.large_name, {64, 1024}, described.large);
  if (described.is_reordered) add_small();
  const std::string path = testing::TempDir() + "fingerprint.gguf";
  builder.write(path);
  const auto checkpoint = open_checkpoint(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().to_string();
  std::string fingerprint = model_fingerprint(**checkpoint);
  std::filesystem::remove(path);
  return fingerprint;
}

TEST(ModelFingerprint, IsOfTheNumbersAlone) {
  const std::string one = fingerprint_of({});
  EXPECT_EQ(one.size(), 32U);
  EXPECT_EQ(fingerprint_of({}), one);
  EXPECT_EQ(fingerprint_of({.name = "another name"}), one);
  EXPECT_EQ(fingerprint_of({.word = "b"}), one) << "the vocabulary has its own";
  EXPECT_EQ(fingerprint_of({.is_reordered = true}), one) << "as a split file's parts may be";
}

TEST(ModelFingerprint, DiffersWithWhatDecidesNumbers) {
  const std::string one = fingerprint_of({});
  EXPECT_NE(fingerprint_of({.layers = 3}), one);
  EXPECT_NE(fingerprint_of({.small = {1, 2, 3, 5}}), one);
  EXPECT_NE(fingerprint_of({.large_name = "larger.weight"}), one);
  for (const size_t at : {size_t{0}, size_t{1023}, size_t{64 * 1024 - 1}}) {
    Described changed;
    changed.large[at] = 0.25F;
    EXPECT_NE(fingerprint_of(changed), one) << "weight " << at;
  }
  Described tuned;  // as training goes on, every weight moves
  for (float& weight : tuned.large) weight += 1e-6F;
  EXPECT_NE(fingerprint_of(tuned), one);
}

}  // namespace
}  // namespace headrace
