#include "text/gguf_vocabulary_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "tests/conformance.h"
#include "text/hf/tokenizer_json.h"
#include "text/hf/tokenizer_json_writer.h"
#include "text/test_vocabulary.h"

namespace headrace {
namespace {

std::shared_ptr<const Tokenizer> read(const std::string& tokenizer, const std::string& config = "",
                                      int64_t num_rows = 0) {
  text::HfFiles files;
  files.tokenizer = tokenizer;
  files.tokenizer_config = config;
  TokenizerOptions options;
  options.num_rows = num_rows;
  return std::move(text::read_tokenizer_json(files, options, "tokenizer.json")).value();
}

/// A small tokenizer.json of tests/golden/tokenizers.
std::shared_ptr<const Tokenizer> fixture(const std::string& name, int64_t num_rows = 0) {
  std::ifstream file(HEADRACE_SOURCE_DIR "/tests/golden/tokenizers/" + name + ".json");
  return read(nlohmann::json::parse(file)["tokenizer"].dump(), "", num_rows);
}

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

// Of the same vocabulary tokenizer.json has merges and steps, GGUF scores and a flag.
TEST(GgufVocabularyWriter, StepsOfSentencePieceAreSaidAsThat) {
  auto builder = text::sentencepiece_example();
  const auto gguf = builder.build();
  const auto files = std::move(write_hf_tokenizer(builder.metadata())).value();
  const auto json = read(files.tokenizer, files.config);
  EXPECT_EQ(json->fingerprint(), gguf->fingerprint());
  EXPECT_TRUE(check_same_tokenizer(*gguf, "file", *json, "directory").ok());

  Metadata metadata;
  std::deque<std::string> texts;
  const auto put = put_gguf_vocabulary(*json, metadata, texts);
  ASSERT_TRUE(put.ok()) << put.error().to_string();
  EXPECT_EQ(metadata.get_string("tokenizer.ggml.model").value(), "llama");
  EXPECT_TRUE(same_as_written(*json, metadata));
  EXPECT_EQ(std::move(make_tokenizer(metadata, {})).value()->fingerprint(), gguf->fingerprint());
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_FALSE(same_as_written(*json, metadata));
}

// SentencePiece has no word for neighbours that stay apart, which only matters where there are any.
TEST(GgufVocabularyWriter, UnknownNeighboursThatStayApart) {
  auto builder = text::sentencepiece_example();
  const auto files = std::move(write_hf_tokenizer(builder.metadata())).value();
  for (const bool has_all_bytes : {true, false}) {
    for (const bool is_joined : {true, false}) {
      auto root = nlohmann::json::parse(files.tokenizer);
      root["model"]["fuse_unk"] = is_joined;
      if (!has_all_bytes) {
        auto& vocab = root["model"]["vocab"];
        vocab["[0xC3]"] = vocab["<0xC3>"];
        vocab.erase("<0xC3>");
      }
      const auto json = read(root.dump(), files.config);
      Metadata metadata;
      std::deque<std::string> texts;
      ASSERT_TRUE(put_gguf_vocabulary(*json, metadata, texts).ok());
      EXPECT_EQ(same_as_written(*json, metadata), has_all_bytes || is_joined)
          << has_all_bytes << is_joined;
    }
  }
}

TEST(GgufVocabularyWriter, OtherStepsAreRefused) {
  Metadata metadata;
  std::deque<std::string> texts;
  EXPECT_FALSE(put_gguf_vocabulary(*fixture("unigram-t5"), metadata, texts).ok());
  EXPECT_FALSE(put_gguf_vocabulary(*fixture("bpe-suffix"), metadata, texts).ok());
  EXPECT_TRUE(metadata.values().empty());
}

TEST(GgufVocabularyWriter, PaddingIsUnusedTokens) {
  const int64_t num_tokens = fixture("bytes-gpt2")->vocab_size();
  const auto padded = fixture("bytes-gpt2", num_tokens + 2);
  ASSERT_EQ(padded->vocab_size(), num_tokens + 2);
  EXPECT_EQ(padded->fingerprint(), fixture("bytes-gpt2")->fingerprint());
  Metadata metadata;
  std::deque<std::string> texts;
  ASSERT_TRUE(put_gguf_vocabulary(*padded, metadata, texts).ok());
  const auto written = std::move(make_tokenizer(metadata, {})).value();
  for (const auto& tokenizer : {padded, written}) {
    const auto last = static_cast<TokenId>(num_tokens + 1);
    EXPECT_EQ(tokenizer->kind(last), TokenKind::unused);
    EXPECT_EQ(tokenizer->piece(last), "[PAD" + std::to_string(last) + "]");
    EXPECT_EQ(tokenizer->bytes(last), "");
    EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{last}, false), "");
    const auto ids = tokenizer->encode(tokenizer->piece(last), {}).value();
    EXPECT_EQ(std::count(ids.begin(), ids.end(), last), 0);
  }
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
