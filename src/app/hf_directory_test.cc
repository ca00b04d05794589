// Hugging Face directories from end to end: an embedding with more rows than there are tokens, and
// the GGUF file that is made of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/convert.h"
#include "app/open_model.h"
#include "app/tokenizer_check.h"
#include "model/hf/hf_checkpoint.h"
#include "tests/safetensors_builder.h"
#include "text/hf/tokenizer_json_writer.h"
#include "text/test_vocabulary.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kWidth = 32;
constexpr int64_t kHidden = 64;

class HfDirectoryOfModel : public testing::Test {
 protected:
  HfDirectoryOfModel() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    auto builder = text::sentencepiece_example();
    num_tokens_ = builder.build()->vocab_size();
    const auto files = std::move(write_hf_tokenizer(builder.metadata())).value();
    write("tokenizer.json", files.tokenizer);
    write("tokenizer_config.json", files.config);
    write("chat_template.json", R"({"chat_template":"{{ messages[0].content }}"})");
  }
  ~HfDirectoryOfModel() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  /// A model whose embedding has `rows` rows.
  void write_model(int64_t rows) const {
    write("config.json", json({{"architectures", {"LlamaForCausalLM"}},
                               {"hidden_size", kWidth},
                               {"intermediate_size", kHidden},
                               {"num_hidden_layers", 1},
                               {"num_attention_heads", 2},
                               {"max_position_embeddings", 64},
                               {"tie_word_embeddings", true}})
                             .dump());
    test::SafetensorsBuilder file;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      const int64_t count = shape.size() == 1 ? shape[0] : shape[0] * shape[1];
      std::vector<float> values;
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 23) / 64);
      file.add_f32(name + ".weight", shape, values);
    };
    const std::string layer = "model.layers.0.";
    add("model.embed_tokens", {rows, kWidth});
    for (const char* name : {"model.norm", "model.layers.0.input_layernorm",
                             "model.layers.0.post_attention_layernorm"}) {
      add(name, {kWidth});
    }
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      add(layer + "self_attn." + name, {kWidth, kWidth});
    }
    add(layer + "mlp.gate_proj", {kHidden, kWidth});
    add(layer + "mlp.up_proj", {kHidden, kWidth});
    add(layer + "mlp.down_proj", {kWidth, kHidden});
    write("model.safetensors", file.build());
  }

  static Result<std::unique_ptr<OpenedModel>> open(const std::string& path) {
    OpenOptions options;
    options.num_threads = 1;
    options.memory_bytes = uint64_t{1} << 30;
    return open_model(path, options);
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "hf_directory_test";
  int64_t num_tokens_ = 0;
};

TEST_F(HfDirectoryOfModel, RowsWithoutTokensAreUnused) {
  write_model(num_tokens_ + 3);
  const auto opened = open(folder_.string());
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  const Tokenizer& tokenizer = *(*opened)->tokenizer;
  EXPECT_EQ(tokenizer.vocab_size(), num_tokens_ + 3);
  EXPECT_EQ((*opened)->model->info().vocab_size, num_tokens_ + 3);
  const auto padding = static_cast<TokenId>(num_tokens_ + 2);
  EXPECT_EQ(tokenizer.kind(padding), TokenKind::unused);
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{padding}, false), "");
  const auto bare = open_hf_tokenizer(folder_.string(), {});
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ((*bare)->vocab_size(), num_tokens_);
  EXPECT_TRUE(compare_tokenizers(tokenizer, "a", **bare, "b").same());
}

TEST_F(HfDirectoryOfModel, IsCalledByItsNameInAHubsCache) {
  write_model(num_tokens_);
  const auto opened = open(folder_.string() + "/");
  ASSERT_TRUE(opened.ok()) << opened.error().to_string();
  EXPECT_EQ((*opened)->model->info().name, "hf_directory_test");
  const fs::path cache = fs::path(testing::TempDir()) / "hf_directory_cache";
  fs::remove_all(cache);
  const fs::path snapshot = cache / "models--org--Tiny-1B" / "snapshots" / "0123abc";
  fs::create_directories(snapshot.parent_path());
  fs::rename(folder_, snapshot);
  const auto cached = open(snapshot.string());
  EXPECT_TRUE(cached.ok() && (*cached)->model->info().name == "Tiny-1B");
  fs::remove_all(cache);
}

TEST_F(HfDirectoryOfModel, TokensWithoutRowsAreRefused) {
  write_model(num_tokens_ - 1);
  const auto opened = open(folder_.string());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::mismatch);
}

TEST_F(HfDirectoryOfModel, TheGgufFileHasTheSameTokenizerAndTemplate) {
  write_model(num_tokens_ + 3);
  const std::string gguf = (folder_ / "made.gguf").string();
  const auto checkpoint = std::move(open_model_files(folder_.string())).value();
  const auto summary = convert_model(*checkpoint, gguf, {.num_threads = 1});
  ASSERT_TRUE(summary.ok()) << summary.error().to_string();
  EXPECT_TRUE(summary->warnings.empty()) << summary->warnings.front();

  const auto from = open(folder_.string());
  const auto made = open(gguf);
  ASSERT_TRUE(from.ok() && made.ok());
  EXPECT_EQ((*made)->tokenizer->description(), "SentencePiece BPE");
  EXPECT_EQ((*made)->tokenizer->fingerprint(), (*from)->tokenizer->fingerprint());
  const auto found =
      compare_tokenizers(*(*from)->tokenizer, "directory", *(*made)->tokenizer, "file");
  EXPECT_TRUE(found.same()) << found.rules;
  EXPECT_EQ((*made)->tokenizer->special().eos, (*from)->tokenizer->special().eos);
  EXPECT_TRUE((*from)->chat_template && (*made)->chat_template);
}

}  // namespace
}  // namespace headrace
