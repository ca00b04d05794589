// GGUF models written as Hugging Face directories: what is read of these gives the same numbers.
#include "app/convert_to_hf.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "app/convert.h"
#include "app/model_files.h"
#include "backend/cpu/cpu_backend.h"
#include "model/hf/hf_checkpoint.h"
#include "model/model.h"
#include "tests/conformance.h"
#include "tests/model_logits.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ConvertToHf : public testing::Test {
 protected:
  ConvertToHf() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ConvertToHf() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  static std::unique_ptr<Checkpoint> open(const std::string& path) {
    auto opened = open_model_files(path);
    if (!opened.ok()) throw std::runtime_error(opened.error().to_string());
    return std::move(opened).value();
  }

  static std::vector<float> logits(const std::string& path) {
    const auto checkpoint = open(path);
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    auto model = load_model(*checkpoint, *backend, {});
    if (!model.ok()) throw std::runtime_error(model.error().to_string());
    const std::vector<TokenId> tokens = {3, 17, 5, 39, 0, 22, 22, 8};
    return test::model_logits(**model, tokens);
  }

  Result<ConvertSummary> convert(const std::string& from, const std::string& to,
                                 const std::string& type = "", bool overwrite = false) const {
    ConvertOptions options;
    options.to = find_quantization(type);
    options.overwrite = overwrite;
    options.num_threads = 1;
    const auto checkpoint = open(from);
    return is_hf_target(to) ? convert_to_hf(*checkpoint, to, options)
                            : convert_model(*checkpoint, to, options);
  }

  static json config_of(const std::string& folder) {
    std::ifstream file(fs::path(folder) / "config.json");
    return json::parse(file);
  }

  size_t num_files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "convert_to_hf_test";
};

TEST_F(ConvertToHf, TinyModelsGiveTheSameLogits) {
  test::TinyOptions biased;
  biased.has_biases = true;
  biased.has_own_head = false;
  test::TinyOptions part;
  part.rope_dims = 4;
  test::TinyOptions window;
  window.window = 8;
  test::TinyOptions experts;
  experts.num_experts = 3;
  experts.expert_length = experts.feed_forward;
  const std::vector<std::pair<std::string, test::TinyOptions>> cases = {
      {"LlamaForCausalLM", {}},        {"LlamaForCausalLM", biased},
      {"LlamaForCausalLM", part},      {"MistralForCausalLM", window},
      {"MixtralForCausalLM", experts}, {"Gemma3ForCausalLM", test::tiny_gemma3_options()}};
  for (const auto& [name, options] : cases) {
    test::tiny_model(options).file.write(at("in.gguf"));
    const auto summary = convert(at("in.gguf"), at("out"), "", true);
    ASSERT_TRUE(summary.ok()) << name << ": " << summary.error().to_string();
    EXPECT_EQ(config_of(at("out"))["architectures"][0], name);
    EXPECT_EQ(logits(at("out")), logits(at("in.gguf"))) << name;
  }
}

TEST_F(ConvertToHf, ScalingsOfPositionsAreSaidAgain) {
  for (const std::string type : {"linear", "yarn"}) {
    test::TinyModel tiny = test::tiny_model({});
    tiny.file.add("llama.rope.scaling.type", type);
    tiny.file.add("llama.rope.scaling.factor", 4.0F);
    tiny.file.add("llama.rope.scaling.original_context_length", uint32_t{64});
    tiny.file.write(at("in.gguf"));
    const auto summary = convert(at("in.gguf"), at("out"), "", true);
    ASSERT_TRUE(summary.ok()) << type << ": " << summary.error().to_string();
    EXPECT_EQ(config_of(at("out"))["rope_scaling"]["rope_type"], type);
    const auto before = logits(at("in.gguf"));
    const auto after = logits(at("out"));
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-5F) << type;
  }
}

TEST_F(ConvertToHf, BlocksBecomeTheAskedType) {
  test::tiny_model({.embedding = 64, .feed_forward = 96, .head_dim = 16, .rope_dims = 16})
      .file.write(at("in.gguf"));
  ASSERT_TRUE(convert(at("in.gguf"), at("q8.gguf"), "q8_0").ok());
  ASSERT_TRUE(convert(at("q8.gguf"), at("out32"), "f32").ok());
  EXPECT_EQ(logits(at("out32")), logits(at("q8.gguf")));
  ASSERT_TRUE(convert(at("q8.gguf"), at("out")).ok());
  EXPECT_EQ(open(at("out"))->find("blk.0.attn_q.weight")->format, Format::f16);
  EXPECT_EQ(config_of(at("out"))["torch_dtype"], "float16");
  ASSERT_TRUE(convert(at("q8.gguf"), at("out"), "bf16", true).ok());
  EXPECT_EQ(open(at("out"))->find("blk.0.attn_q.weight")->format, Format::bf16);
  EXPECT_EQ(open(at("out"))->find("blk.0.attn_norm.weight")->format, Format::f32)
      << "which bf16 cannot hold";
}

TEST_F(ConvertToHf, NothingIsOverwrittenUnasked) {
  test::tiny_model({}).file.write(at("in.gguf"));
  const auto error = [&](const std::string& to, bool overwrite, const std::string& type = "") {
    const auto done = convert(at("in.gguf"), at(to), type, overwrite);
    return done.ok() ? std::string("no error") : done.error().to_string();
  };
  EXPECT_EQ(error("out/", false), "no error");
  EXPECT_EQ(num_files(), 2U) << "nothing is left beside";
  EXPECT_NE(error("out", false).find("--force"), std::string::npos);
  EXPECT_EQ(error("out", true), "no error");
  EXPECT_EQ(num_files(), 2U);
  fs::create_directories(at("other"));
  std::ofstream(at("other/letter")) << "dear";
  EXPECT_NE(error("other", true).find("something else than a model"), std::string::npos);
  EXPECT_TRUE(fs::exists(at("other/letter")));
  std::ofstream(at("other/config.json")) << "{}";
  EXPECT_NE(error("other", true).find("something else than"), std::string::npos);
  EXPECT_TRUE(fs::exists(at("other/letter")));
  std::ofstream(at("file")) << "text";
  EXPECT_NE(error("file", true).find("no directory"), std::string::npos);
  EXPECT_NE(error("new", false, "q4_k").find("f32, f16 or bf16"), std::string::npos);
  const auto again = convert(at("out"), at("new"));
  ASSERT_FALSE(again.ok());
  EXPECT_NE(again.error().to_string().find("already"), std::string::npos);
  EXPECT_FALSE(fs::exists(at("new")));
}

TEST_F(ConvertToHf, AModelIsNotReplacedByItself) {
  test::tiny_model({}).file.write(at("in.gguf"));
  ASSERT_TRUE(convert(at("in.gguf"), at("out")).ok());
  fs::create_directories(at("out/files"));
  for (const char* place : {"out/in.gguf", "out/files/in.gguf"}) {
    fs::copy_file(at("in.gguf"), at(place));
    const auto done = convert(at(place), at("out"), "", true);
    ASSERT_FALSE(done.ok()) << place;
    EXPECT_NE(done.error().to_string().find("holds the model that is converted"),
              std::string::npos);
    EXPECT_TRUE(fs::exists(at(place)));
  }
  EXPECT_TRUE(convert(at("in.gguf"), at("out"), "", true).ok());
  EXPECT_FALSE(fs::exists(at("out/files"))) << "replaced as a whole";
  EXPECT_EQ(num_files(), 2U);
}

TEST_F(ConvertToHf, ALinkLeadsToTheDirectoryThatIsWritten) {
  test::tiny_model({}).file.write(at("in.gguf"));
  fs::create_directories(at("empty"));
  fs::create_directory_symlink(at("empty"), at("link"));
  for (const bool overwrite : {false, true}) {
    const auto done = convert(at("in.gguf"), at("link"), "", overwrite);
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    EXPECT_TRUE(fs::is_symlink(at("link")));
    EXPECT_TRUE(fs::exists(at("empty/config.json")));
    EXPECT_EQ(num_files(), 3U) << "nothing is left beside";
  }
}

// What appeared while the weights were written is not touched.
TEST_F(ConvertToHf, AnotherDirectoryOfTheNameStays) {
  test::tiny_model({}).file.write(at("in.gguf"));
  for (const bool overwrite : {false, true}) {
    ConvertOptions options;
    options.overwrite = overwrite;
    options.progress = [&](uint64_t, uint64_t) {
      fs::create_directories(at("out"));
      std::ofstream(at("out/letter")) << "dear";
      return true;
    };
    EXPECT_FALSE(convert_to_hf(*open(at("in.gguf")), at("out"), options).ok());
    EXPECT_TRUE(fs::exists(at("out/letter")));
    EXPECT_EQ(num_files(), 2U);
    fs::remove_all(at("out"));
  }
}

TEST_F(ConvertToHf, ManyWeightsAreSpreadOverFiles) {
  test::tiny_model({}).file.write(at("in.gguf"));
  ConvertOptions options;
  options.most_shard_bytes = 10'000;
  const auto done = convert_to_hf(*open(at("in.gguf")), at("out"), options);
  ASSERT_TRUE(done.ok()) << done.error().to_string();
  std::ifstream file(folder_ / "out/model.safetensors.index.json");
  const json index = json::parse(file);
  EXPECT_EQ(index["weight_map"].size(), static_cast<size_t>(done->num_tensors));
  EXPECT_EQ(index["metadata"]["total_size"], 4 * done->num_parameters);
  const std::string first = index["weight_map"]["model.embed_tokens.weight"];
  EXPECT_TRUE(first.starts_with("model-00001-of-000")) << first;
  EXPECT_FALSE(fs::exists(folder_ / "out/model.safetensors"));
  EXPECT_EQ(logits(at("out")), logits(at("in.gguf")));
}

TEST_F(ConvertToHf, AWeightBeyondTheTypeIsNamed) {
  test::TinyModel tiny = test::tiny_metadata({});
  std::vector<float> values(static_cast<size_t>(50 * 32), 0.5F);
  values[32 * 7 + 3] = 70000;
  test::TinyModel whole = test::tiny_model({});
  tiny.add("token_embd.weight", {50, 32}, values);
  for (const auto& [name, tensor] : whole.tensors) {
    if (name != "token_embd.weight") tiny.add(name, tensor.shape, tensor.values);
  }
  tiny.file.write(at("in.gguf"));
  const auto done = convert(at("in.gguf"), at("out"), "f16");
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().to_string().find("row 7, column 3"), std::string::npos)
      << done.error().to_string();
  EXPECT_TRUE(convert(at("in.gguf"), at("out"), "bf16").ok());
}

TEST_F(ConvertToHf, AnInterruptedOneLeavesNothing) {
  test::tiny_model({}).file.write(at("in.gguf"));
  ConvertOptions options;
  options.progress = [](uint64_t, uint64_t) { return false; };
  const auto done = convert_to_hf(*open(at("in.gguf")), at("out"), options);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::cancelled);
  EXPECT_EQ(num_files(), 1U);
}

// Bytes of metadata and tensor records changed: a directory, or an error of one line and nothing.
TEST_F(ConvertToHf, MutantsOfTheFile) {
  std::mt19937 random(5);
  test::TinyOptions options;
  options.num_layers = 1;
  options.vocab = 8;
  test::TinyModel tiny = test::tiny_model(options);
  tiny.file.add("llama.rope.scaling.type", std::string("linear"));
  tiny.file.add("llama.rope.scaling.factor", 4.0F);
  tiny.file.write(at("in.gguf"));
  std::ifstream file(at("in.gguf"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  size_t num_written = 0;
  for (int i = 0; i < 300; ++i) {
    std::string mutant = whole;
    for (size_t edits = random() % 3 + 1; edits > 0; --edits) {
      mutant[24 + random() % 1500] = static_cast<char>(random());
    }
    std::ofstream(at("mutant.gguf"), std::ios::binary) << mutant;
    const auto opened = open_checkpoint(at("mutant.gguf"));
    if (!opened.ok()) continue;
    const auto done = convert_to_hf(**opened, at("mutant"), {});
    EXPECT_EQ(done.ok(), fs::exists(at("mutant")));
    num_written += done.ok() ? 1 : 0;
    const std::string error = done.ok() ? "" : done.error().to_string();
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    fs::remove_all(at("mutant"));
  }
  EXPECT_GT(num_written, 5U);
}

TEST_F(ConvertToHf, WhatConfigJsonCannotSayIsRefused) {
  test::TinyOptions options;
  options.num_experts = 3;
  options.expert_length = 32;
  options.normalises = false;  // Mixtral's always are
  test::tiny_model(options).file.write(at("in.gguf"));
  const auto done = convert(at("in.gguf"), at("out"));
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::unsupported);
  EXPECT_NE(done.error().to_string().find("cannot say"), std::string::npos);
  EXPECT_FALSE(fs::exists(at("out")));
}

// Readers of GGUF files ask for unsigned integers and floats of 32 bits, experts in one tensor, and
// a kind of tokenizer even where there is none.
TEST_F(ConvertToHf, FilesMadeOfDirectoriesAreAsOtherReadersExpect) {
  test::TinyOptions options;
  options.num_experts = 3;
  options.expert_length = options.feed_forward;
  test::tiny_model(options).file.write(at("in.gguf"));
  ASSERT_TRUE(convert(at("in.gguf"), at("hf")).ok());
  ASSERT_TRUE(convert(at("hf"), at("back.gguf")).ok());
  const auto back = open(at("back.gguf"));
  for (const auto& [key, value] : back->metadata().values()) {
    EXPECT_FALSE(std::holds_alternative<int64_t>(value)) << key;
    if (const double* number = std::get_if<double>(&value)) {
      EXPECT_EQ(*number, static_cast<double>(static_cast<float>(*number))) << key;
    }
  }
  EXPECT_EQ(**back->metadata().get_string("tokenizer.ggml.model"), "none");
  EXPECT_EQ(**back->metadata().get_int("llama.vocab_size"), options.vocab);
  const CheckpointTensor* experts = back->find("blk.0.ffn_gate_exps.weight");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->shape, (std::vector<int64_t>{3, options.feed_forward, options.embedding}));
  EXPECT_EQ(back->tensors().size(), open(at("in.gguf"))->tensors().size());
  EXPECT_EQ(logits(at("back.gguf")), logits(at("in.gguf")));
  const auto tokenizer = tokenizer_of(*back, {});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().to_string();
  EXPECT_EQ((*tokenizer)->vocab_size(), options.vocab);
}

// Directory to GGUF to directory: the same keys and the same numbers.
TEST_F(ConvertToHf, ReferenceModelsComeBack) {
  const auto models = conformance::folder("models");
  if (models.empty()) GTEST_SKIP() << "no reference data";
  for (const auto& entry : fs::directory_iterator(models)) {
    const std::string name = entry.path().filename().string();
    ASSERT_TRUE(convert(entry.path().string(), at(name + ".gguf")).ok()) << name;
    const auto summary = convert(at(name + ".gguf"), at(name));
    ASSERT_TRUE(summary.ok()) << name << ": " << summary.error().to_string();
    const auto before = open(entry.path().string());
    const auto after = open(at(name));
    const auto values_of = [](const Checkpoint& checkpoint) {
      auto values = checkpoint.metadata().values();
      std::erase_if(values, [](const auto& one) { return one.first.starts_with("tokenizer."); });
      return values;
    };
    EXPECT_EQ(values_of(*after), values_of(*before)) << name;
    EXPECT_EQ(config_of(at(name))["architectures"],
              config_of(entry.path().string())["architectures"]);
    ASSERT_EQ(after->tensors().size(), before->tensors().size()) << name;
    for (const CheckpointTensor& tensor : before->tensors()) {
      const CheckpointTensor* other = after->find(tensor.name);
      ASSERT_NE(other, nullptr) << name << " " << tensor.name;
      EXPECT_EQ(other->format, tensor.format) << name << " " << tensor.name;
      EXPECT_EQ(other->shape, tensor.shape) << name << " " << tensor.name;
      const auto bytes = before->read(tensor);
      const auto found = after->read(*other);
      EXPECT_TRUE(std::ranges::equal(*bytes, *found)) << name << " " << tensor.name;
    }
    EXPECT_EQ(logits(at(name)), logits(at(name + ".gguf"))) << name;
    fs::remove_all(at(name));
  }
}

}  // namespace
}  // namespace headrace
