#include "text/gguf_vocabulary_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "tests/conformance.h"

namespace headrace {
namespace {

TEST(GgufVocabularyWriter, WhatWasReadIsSaidAgain) {
  const auto paths = conformance::files("tokenizers", ".gguf");
  if (paths.empty()) GTEST_SKIP() << "no reference data";
  for (const auto& path : paths) {
    const auto checkpoint = std::move(open_checkpoint(path.string()).value());
    const auto tokenizer = make_tokenizer(checkpoint->metadata(), {});
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().to_string();
    Metadata metadata;
    std::deque<std::string> texts;
    ASSERT_TRUE(put_gguf_vocabulary(**tokenizer, metadata, texts).ok());
    EXPECT_TRUE(same_as_written(**tokenizer, metadata)) << path;
    const auto written = **metadata.get_strings("tokenizer.ggml.tokens");
    std::vector<std::string_view> tokens(written.begin(), written.end());
    tokens[200] = "another";
    metadata.set("tokenizer.ggml.tokens", std::move(tokens));
    EXPECT_FALSE(same_as_written(**tokenizer, metadata)) << path;
  }
}

TEST(GgufVocabularyWriter, PaddingIsUnusedTokens) {
  Metadata metadata;
  metadata.set("tokenizer.ggml.tokens", std::vector<std::string_view>{"a", "b"});
  metadata.set("tokenizer.ggml.token_type", std::vector<int64_t>{1, 3});
  std::deque<std::string> texts;
  pad_gguf_vocabulary(metadata, 4, texts);
  const std::vector<std::string_view> expected = {"a", "b", "[PAD2]", "[PAD3]"};
  EXPECT_EQ(*metadata.find("tokenizer.ggml.tokens"), MetaValue(expected));
  EXPECT_EQ(*metadata.find("tokenizer.ggml.token_type"),
            MetaValue(std::vector<int64_t>{1, 3, 5, 5}));
  EXPECT_EQ(metadata.find("tokenizer.ggml.scores"), nullptr);
  pad_gguf_vocabulary(metadata, 3, texts);
  EXPECT_EQ(*metadata.find("tokenizer.ggml.tokens"), MetaValue(expected));
}

TEST(GgufVocabularyWriter, IdsAloneAreRefused) {
  const auto tokenizer = std::move(make_id_tokenizer(10, {})).value();
  Metadata metadata;
  std::deque<std::string> texts;
  EXPECT_FALSE(put_gguf_vocabulary(*tokenizer, metadata, texts).ok());
  EXPECT_TRUE(metadata.values().empty());
}

}  // namespace
}  // namespace headrace
