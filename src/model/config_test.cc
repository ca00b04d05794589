// What a config makes of a file's keys, beyond what loading a whole tiny model shows.
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/registry.h"

namespace headrace {
namespace {

/// Metadata of a model with the sizes of Gemma 3 27B, unless set otherwise.
Metadata gemma3_metadata() {
  Metadata metadata;
  const auto set = [&](const std::string& name, int64_t value) {
    metadata.set("gemma3." + name, value);
  };
  set("context_length", 131072);
  set("block_count", 62);
  set("embedding_length", 5376);
  set("feed_forward_length", 21504);
  set("attention.head_count", 32);
  set("attention.head_count_kv", 16);
  set("attention.key_length", 128);
  set("attention.value_length", 128);
  set("attention.sliding_window", 1024);
  metadata.set("gemma3.attention.layer_norm_rms_epsilon", 1e-6);
  return metadata;
}

ModelConfig config_of(const Metadata& metadata) {
  ConfigReader reader(metadata, "gemma3");
  ModelConfig config = find_architecture("gemma3")->read_config(reader);
  EXPECT_FALSE(reader.error()) << reader.error()->to_string();
  return config;
}

Error error_of(const Metadata& metadata) {
  ConfigReader reader(metadata, "gemma3");
  find_architecture("gemma3")->read_config(reader);
  EXPECT_TRUE(reader.error());
  return reader.error().value_or(Error{});
}

TEST(Gemma3Config, TheLargestScalesByItsWidthForEachHead) {
  Metadata metadata = gemma3_metadata();
  EXPECT_FLOAT_EQ(config_of(metadata).attention_scale, 1 / std::sqrt(168.0F));
  metadata.set("gemma3.attention.scale", 0.25);
  EXPECT_FLOAT_EQ(config_of(metadata).attention_scale, 0.25F);

  metadata = gemma3_metadata();
  metadata.set("gemma3.block_count", int64_t{48});
  EXPECT_FLOAT_EQ(config_of(metadata).attention_scale, 1 / std::sqrt(128.0F));
}

TEST(Gemma3Config, ThePeriodMayExceedTheLayers) {
  Metadata metadata = gemma3_metadata();
  metadata.set("gemma3.block_count", int64_t{4});
  metadata.set("gemma3.attention.sliding_window_pattern", int64_t{6});
  EXPECT_EQ(config_of(metadata).is_window_layer, std::vector<bool>(4, true));
  metadata.set("gemma3.attention.sliding_window_pattern", int64_t{1} << 40);
  EXPECT_EQ(error_of(metadata).where, "gemma3.attention.sliding_window_pattern");
}

TEST(Gemma3Config, FlagsOfLayersAreOneALayer) {
  Metadata metadata = gemma3_metadata();
  metadata.set("gemma3.block_count", int64_t{3});
  metadata.set("gemma3.attention.sliding_window_pattern", std::vector<int64_t>{1, 0, 1});
  EXPECT_EQ(config_of(metadata).is_window_layer, (std::vector<bool>{true, false, true}));
  metadata.set("gemma3.attention.sliding_window_pattern", std::vector<int64_t>{1, 0});
  const Error error = error_of(metadata);
  EXPECT_EQ(error.where, "gemma3.attention.sliding_window_pattern");
  EXPECT_EQ(error.message, "expected one entry for each of the 3 layers, found 2");
}

TEST(Config, ContextsEndWithTheLastInt32) {
  Metadata metadata = gemma3_metadata();
  metadata.set("gemma3.context_length", int64_t{INT32_MAX});
  EXPECT_EQ(config_of(metadata).context_length, INT32_MAX);
  metadata.set("gemma3.context_length", int64_t{INT32_MAX} + 1);
  EXPECT_EQ(error_of(metadata).where, "gemma3.context_length");
}

class YarnConfig : public testing::Test {
 protected:
  YarnConfig() {
    metadata_.set("gemma3.rope.scaling.type", std::string_view("yarn"));
    metadata_.set("gemma3.rope.scaling.factor", 16.0);
  }
  Metadata metadata_ = gemma3_metadata();
};

TEST_F(YarnConfig, ReadsWhatItKnows) {
  EXPECT_DOUBLE_EQ(config_of(metadata_).rope.attention_factor, yarn_attention_factor(16));
  metadata_.set("gemma3.rope.scaling.yarn_beta_fast", 24.0);
  metadata_.set("gemma3.rope.scaling.yarn_beta_slow", 2.0);
  metadata_.set("gemma3.rope.scaling.yarn_attn_factor", 0.5);
  metadata_.set("gemma3.rope.scaling.yarn_ext_factor", 1.0);
  metadata_.set("gemma3.rope.scaling.yarn_log_multiplier", 0.0);
  const RopeConfig rope = config_of(metadata_).rope;
  EXPECT_EQ(rope.beta_fast, 24);
  EXPECT_EQ(rope.beta_slow, 2);
  EXPECT_DOUBLE_EQ(rope.attention_factor, yarn_attention_factor(16) / 2);
}

TEST_F(YarnConfig, RefusesWhatItWouldIgnore) {
  for (const char* name : {"yarn_ext_factor", "yarn_log_multiplier"}) {
    Metadata metadata = metadata_;
    metadata.set("gemma3.rope.scaling." + std::string(name), 0.5);
    const Error error = error_of(metadata);
    EXPECT_EQ(error.code, ErrorCode::unsupported);
    EXPECT_EQ(error.where, "gemma3.rope.scaling." + std::string(name));
  }
}

TEST_F(YarnConfig, TheBaseMustExceedOne) {
  for (const double base : {1.0, 0.5}) {
    metadata_.set("gemma3.rope.freq_base", base);
    const Error error = error_of(metadata_);
    EXPECT_EQ(error.code, ErrorCode::corrupt_data);
    EXPECT_EQ(error.where, "gemma3.rope.freq_base");
  }
}

}  // namespace
}  // namespace headrace
