// Hugging Face directories as checkpoints: what is translated, what is made on the way, and what is
// refused, by the name that the user's files have for it.
#include "model/hf/hf_checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "model/model.h"
#include "model/registry.h"
#include "tests/safetensors_builder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::SafetensorsBuilder;

constexpr int64_t kWidth = 8;
constexpr int64_t kHidden = 12;
constexpr int64_t kVocab = 11;

std::vector<float> counting(int64_t count, float from = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), from);
  for (float& value : values) value /= 100;
  return values;
}

json llama_json() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", kWidth},
          {"intermediate_size", kHidden},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"max_position_embeddings", 64},
          {"vocab_size", kVocab},
          {"hidden_act", "silu"},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", false},
          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
}

SafetensorsBuilder llama_tensors() {
  SafetensorsBuilder file;
  const std::string layer = "model.layers.0.";
  file.add_f32("model.embed_tokens.weight", {kVocab, kWidth}, counting(kVocab * kWidth));
  file.add_f32("model.norm.weight", {kWidth}, counting(kWidth));
  file.add_f32("lm_head.weight", {kVocab, kWidth}, counting(kVocab * kWidth));
  file.add_f32(layer + "input_layernorm.weight", {kWidth}, counting(kWidth));
  file.add_f32(layer + "post_attention_layernorm.weight", {kWidth}, counting(kWidth));
  file.add_f32(layer + "self_attn.q_proj.weight", {8, kWidth}, counting(8 * kWidth));
  file.add_f32(layer + "self_attn.k_proj.weight", {4, kWidth}, counting(4 * kWidth));
  file.add_f32(layer + "self_attn.v_proj.weight", {4, kWidth}, counting(4 * kWidth));
  file.add_f32(layer + "self_attn.o_proj.weight", {kWidth, 8}, counting(8 * kWidth));
  file.add_f32(layer + "mlp.gate_proj.weight", {kHidden, kWidth}, counting(kHidden * kWidth));
  file.add_f32(layer + "mlp.up_proj.weight", {kHidden, kWidth}, counting(kHidden * kWidth));
  file.add_f32(layer + "mlp.down_proj.weight", {kWidth, kHidden}, counting(kHidden * kWidth));
  return file;
}

class HfCheckpointTest : public testing::Test {
 protected:
  HfCheckpointTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~HfCheckpointTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  void write_model(const json& config, const SafetensorsBuilder& tensors) const {
    write("config.json", config.dump());
    write("model.safetensors", tensors.build());
  }
  std::unique_ptr<Checkpoint> open_or_throw() const {
    auto opened = open_hf_checkpoint(folder_.string());
    if (!opened.ok()) throw std::runtime_error(opened.error().to_string());
    return std::move(opened).value();
  }
  /// Of opening, recognising or loading; "no error" if all went well.
  std::string error_text() const {
    auto opened = open_hf_checkpoint(folder_.string());
    if (!opened.ok()) return opened.error().to_string();
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    const auto loaded = load_model(**opened, *backend, {});
    return loaded.ok() ? "no error" : loaded.error().to_string();
  }
  void expect_config_error(const json& changes, const std::string& part) const {
    json config = llama_json();
    config.merge_patch(changes);
    write_model(config, llama_tensors());
    EXPECT_NE(error_text().find(part), std::string::npos) << changes << ": " << error_text();
  }

  fs::path folder_ = testing::TempDir() + "hf_checkpoint_test";
};

std::vector<float> floats_of(const Checkpoint& checkpoint, const std::string& name) {
  const CheckpointTensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) return {};
  const auto bytes = checkpoint.read(*tensor);
  EXPECT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->size(), tensor->num_bytes());
  std::vector<float> values(static_cast<size_t>(tensor->num_elements()));
  format_traits(tensor->format).decode(bytes->data(), values.data(), values.size());
  return values;
}

TEST_F(HfCheckpointTest, KeysAndNamesAreThoseOfGguf) {
  write_model(llama_json(), llama_tensors());
  write("generation_config.json",
        R"({"temperature":0.6,"top_k":20,"eos_token_id":[3,4],"bos_token_id":1})");
  const auto checkpoint = open_or_throw();
  const Metadata& metadata = checkpoint->metadata();
  EXPECT_EQ(**metadata.get_string("general.architecture"), "llama");
  EXPECT_EQ(**metadata.get_string("general.name"), "hf_checkpoint_test");
  EXPECT_EQ(**metadata.get_int("llama.attention.head_count_kv"), 1);
  EXPECT_EQ(**metadata.get_int("llama.attention.key_length"), 4);
  EXPECT_EQ(**metadata.get_float("general.sampling.temp"), 0.6);
  EXPECT_NE(checkpoint->find("blk.0.attn_q.weight"), nullptr);
  EXPECT_TRUE(checkpoint->keeps_rope_halves());
  EXPECT_EQ(error_text(), "no error");
}

TEST_F(HfCheckpointTest, AFileOfTheDirectoryStandsForIt) {
  write_model(llama_json(), llama_tensors());
  for (const char* name : {"config.json", "model.safetensors"}) {
    EXPECT_TRUE(open_model_files((folder_ / name).string()).ok()) << name;
  }
}

TEST_F(HfCheckpointTest, OldSpellingsMeanTheSame) {
  write_model(llama_json(), llama_tensors());
  const auto now = open_or_throw();
  json config = llama_json();
  config.erase("rope_parameters");
  config["rope_theta"] = 10000.0;
  config["torch_dtype"] = "float32";
  write_model(config, llama_tensors());
  EXPECT_EQ(open_or_throw()->metadata().values(), now->metadata().values());
}

TEST_F(HfCheckpointTest, ATiedHeadIsNotReadTwice) {
  json config = llama_json();
  config["tie_word_embeddings"] = true;
  write_model(config, llama_tensors());
  EXPECT_EQ(open_or_throw()->find("output.weight"), nullptr);
  EXPECT_EQ(error_text(), "no error");
}

TEST_F(HfCheckpointTest, AHeadThatIsMissingIsAFault) {
  SafetensorsBuilder file;
  file.add_f32("model.embed_tokens.weight", {kVocab, kWidth}, counting(kVocab * kWidth));
  write_model(llama_json(), file);
  EXPECT_NE(error_text().find("lm_head.weight"), std::string::npos) << error_text();
}

TEST_F(HfCheckpointTest, ConfigsThatCannotBe) {
  expect_config_error({{"hidden_size", nullptr}}, "config.json: hidden_size: the key is missing");
  expect_config_error({{"hidden_size", "8"}}, "expected an integer, found \"8\"");
  expect_config_error({{"num_hidden_layers", -1}}, "config.json: num_hidden_layers: expected 1 to");
  expect_config_error({{"num_key_value_heads", 3}}, "config.json: num_key_value_heads");
  expect_config_error({{"hidden_act", "tanh"}}, "expected 'silu' or 'swish', found 'tanh'");
  expect_config_error({{"architectures", {"Strange"}}}, "the architecture 'Strange'");
  expect_config_error({{"architectures", 7}}, "expected a list of texts, found 7");
  expect_config_error({{"rope_parameters", {{"rope_type", "spiral"}}}}, "found 'spiral'");
  expect_config_error({{"rope_parameters", {{"rope_theta", "x"}}}},
                      "config.json: rope_parameters.rope_theta: expected a number");
  expect_config_error({{"rope_parameters", {{"rope_type", "llama3"}}}}, "the key is missing");
  expect_config_error({{"quantization_config", {{"quant_method", "strange"}}}}, "'strange'");
  write("config.json", "[]");
  EXPECT_NE(error_text().find("expected a JSON object"), std::string::npos);
  write("config.json", std::string(200, '[') + std::string(200, ']'));
  EXPECT_NE(error_text().find("nested"), std::string::npos);
}

TEST_F(HfCheckpointTest, AConfigThatDisagreesWithTheTensors) {
  expect_config_error({{"intermediate_size", 13}}, "expected shape [13, 8], found [12, 8]");
  expect_config_error({{"num_hidden_layers", 2}}, "blk.1.attn_norm.weight");
  json config = llama_json();
  SafetensorsBuilder tensors = llama_tensors();
  tensors.add_f32("model.layers.0.surprise.weight", {1}, {1});
  write_model(config, tensors);
  EXPECT_NE(error_text().find("model.layers.0.surprise.weight"), std::string::npos);
}

TEST_F(HfCheckpointTest, TwoTensorsOfOnePlace) {
  SafetensorsBuilder tensors = llama_tensors();
  tensors.add_f32("norm.weight", {kWidth}, counting(kWidth));  // as a bare base model has it
  write_model(llama_json(), tensors);
  EXPECT_NE(error_text().find("has the place of 'model.norm.weight' too"), std::string::npos)
      << error_text();
}

TEST_F(HfCheckpointTest, OtherDtypesAreConverted) {
  SafetensorsBuilder file;
  file.add("model.rotary_emb.inv_freq", "U8", {1}, "x");  // what follows lies at odd addresses
  file.add("model.norm.weight", "F8_E4M3", {4}, std::string("\x38\xc0\x7e\x01", 4));
  file.add("model.embed_tokens.weight", "F8_E5M2", {2, 1}, std::string("\x3c\x7b", 2));
  std::string half(sizeof(double), '\0');
  const double value = 0.5;
  std::memcpy(half.data(), &value, sizeof(value));
  file.add("lm_head.weight", "F64", {1, 1}, half);
  file.add_f32("model.layers.0.input_layernorm.weight", {2}, {1.5F, -2});
  write_model(llama_json(), file);
  const auto checkpoint = open_or_throw();
  EXPECT_EQ(floats_of(*checkpoint, "output_norm.weight"),
            (std::vector<float>{1, -2, 448, std::ldexp(1.0F, -9)}));
  EXPECT_EQ(floats_of(*checkpoint, "token_embd.weight"), (std::vector<float>{1, 57344}));
  EXPECT_EQ(floats_of(*checkpoint, "output.weight"), (std::vector<float>{0.5F}));
  EXPECT_EQ(floats_of(*checkpoint, "blk.0.attn_norm.weight"), (std::vector<float>{1.5F, -2}));
}

TEST_F(HfCheckpointTest, MadeTensorsComeBackAfterTheirRelease) {
  json config = llama_json();
  config["architectures"] = {"GemmaForCausalLM"};
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["head_dim"] = 4;
  write_model(config, llama_tensors());
  const auto checkpoint = open_or_throw();
  std::vector<float> expected = counting(kWidth);
  for (float& value : expected) value += 1;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(floats_of(*checkpoint, "output_norm.weight"), expected);
    checkpoint->release(*checkpoint->find("output_norm.weight"));
  }
}

TEST_F(HfCheckpointTest, Conv1dWeightsAreTransposed) {
  SafetensorsBuilder file;
  file.add_f32("h.0.attn.c_proj.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.add("h.0.attn.bias", "BOOL", {1, 1, 4, 4}, std::string(16, '\1'));
  write_model({{"architectures", {"GPT2LMHeadModel"}},
               {"n_embd", 4},
               {"n_layer", 1},
               {"n_head", 1},
               {"n_positions", 4}},
              file);
  const auto checkpoint = open_or_throw();
  ASSERT_EQ(checkpoint->tensors().size(), 1U);
  EXPECT_EQ(checkpoint->tensors()[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(floats_of(*checkpoint, "blk.0.attn_output.weight"),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

constexpr int64_t kExperts = 3;

/// The experts of mixtral's tensors, apart or together, as [experts, out, in] or the other way.
enum class ExpertForm : uint8_t { apart, together, transposed };

/// [rows, cols] to [cols, rows].
std::vector<float> transposed_floats(const std::vector<float>& in, int64_t rows, int64_t cols) {
  std::vector<float> out(in.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      out[static_cast<size_t>(c * rows + r)] = in[static_cast<size_t>(r * cols + c)];
    }
  }
  return out;
}

SafetensorsBuilder mixtral_tensors(ExpertForm form) {
  SafetensorsBuilder file;
  const std::string layer = "model.layers.0.";
  const std::string experts = layer + (form == ExpertForm::apart ? "block_sparse_moe." : "mlp.");
  const auto add = [&](const std::string& name, int64_t rows, int64_t cols, float from = 0) {
    file.add_f32(name + ".weight", {rows, cols}, counting(rows * cols, from));
  };
  file.add_f32("model.norm.weight", {kWidth}, counting(kWidth));
  file.add_f32(layer + "input_layernorm.weight", {kWidth}, counting(kWidth));
  file.add_f32(layer + "post_attention_layernorm.weight", {kWidth}, counting(kWidth));
  add("model.embed_tokens", kVocab, kWidth);
  add("lm_head", kVocab, kWidth);
  add(layer + "self_attn.q_proj", 8, kWidth);
  add(layer + "self_attn.k_proj", 4, kWidth);
  add(layer + "self_attn.v_proj", 4, kWidth);
  add(layer + "self_attn.o_proj", kWidth, 8);
  add(experts + "gate", kExperts, kWidth);
  std::vector<float> gate_up, down;
  for (int64_t e = 0; e < kExperts; ++e) {
    const std::string name = experts + "experts." + std::to_string(e) + ".";
    const auto from = static_cast<float>(100 * e);
    if (form == ExpertForm::apart) {
      add(name + "w1", kHidden, kWidth, from);
      add(name + "w3", kHidden, kWidth, from + 7);
      add(name + "w2", kWidth, kHidden, from + 13);
    }
    std::vector<float> upper = counting(kHidden * kWidth, from);
    const std::vector<float> lower = counting(kHidden * kWidth, from + 7);
    upper.insert(upper.end(), lower.begin(), lower.end());
    std::vector<float> last = counting(kWidth * kHidden, from + 13);
    if (form == ExpertForm::transposed) {
      upper = transposed_floats(upper, 2 * kHidden, kWidth);
      last = transposed_floats(last, kWidth, kHidden);
    }
    gate_up.insert(gate_up.end(), upper.begin(), upper.end());
    down.insert(down.end(), last.begin(), last.end());
  }
  const auto shape = [&](int64_t rows, int64_t cols) {
    return form == ExpertForm::transposed ? std::vector{kExperts, cols, rows}
                                          : std::vector{kExperts, rows, cols};
  };
  if (form != ExpertForm::apart) {
    file.add_f32(experts + "experts.gate_up_proj", shape(2 * kHidden, kWidth), gate_up);
    file.add_f32(experts + "experts.down_proj", shape(kWidth, kHidden), down);
  }
  return file;
}

TEST_F(HfCheckpointTest, ExpertsOfALayerInOneTensor) {
  json config = llama_json();
  config["architectures"] = {"MixtralForCausalLM"};
  config["num_local_experts"] = kExperts;
  config["num_experts_per_tok"] = 2;
  write_model(config, mixtral_tensors(ExpertForm::apart));
  ASSERT_EQ(error_text(), "no error");
  const auto apart = open_or_throw();
  std::map<std::string, std::vector<float>> expected;
  for (const std::string name : {"ffn_gate", "ffn_up", "ffn_down"}) {
    for (int64_t e = 0; e < kExperts; ++e) {
      const auto one = floats_of(*apart, "blk.0." + name + "." + std::to_string(e) + ".weight");
      ASSERT_FALSE(one.empty());
      expected[name].insert(expected[name].end(), one.begin(), one.end());
    }
  }
  for (const ExpertForm form : {ExpertForm::together, ExpertForm::transposed}) {
    write_model(config, mixtral_tensors(form));
    EXPECT_EQ(error_text(), "no error");
    const auto together = open_or_throw();
    for (const auto& [name, values] : expected) {
      EXPECT_EQ(floats_of(*together, "blk.0." + name + "_exps.weight"), values) << name;
    }
    EXPECT_EQ(together->find("blk.0.ffn_down_exps.weight")->shape,
              (std::vector<int64_t>{kExperts, kWidth, kHidden}));
  }
  config["hidden_size"] = 2 * kWidth;
  write_model(config, mixtral_tensors(ExpertForm::together));
  EXPECT_NE(error_text().find("expected matrices of all experts, 16 columns"), std::string::npos)
      << error_text();
}

TEST_F(HfCheckpointTest, IntegersAreNoWeights) {
  SafetensorsBuilder file;
  file.add("model.norm.weight", "I32", {1}, "abcd");
  write_model(llama_json(), file);
  EXPECT_NE(error_text().find("expected floating-point weights"), std::string::npos)
      << error_text();
}

json bert_json(const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"hidden_size", kWidth},
          {"intermediate_size", kHidden},
          {"num_hidden_layers", 1},
          {"num_attention_heads", 2},
          {"max_position_embeddings", 16},
          {"vocab_size", kVocab},
          {"hidden_act", "gelu"},
          {"layer_norm_eps", 1e-12},
          {"position_embedding_type", "absolute"}};
}

/// `prefix`: "" or "bert.", as around a head.
SafetensorsBuilder bert_tensors(const std::string& prefix, bool has_head) {
  SafetensorsBuilder file;
  const auto linear = [&](const std::string& name, int64_t rows, int64_t cols) {
    file.add_f32(name + ".weight", {rows, cols}, counting(rows * cols));
    file.add_f32(name + ".bias", {rows}, counting(rows));
  };
  const auto norm = [&](const std::string& name) {
    file.add_f32(name + ".weight", {kWidth}, counting(kWidth, 50));
    file.add_f32(name + ".bias", {kWidth}, counting(kWidth));
  };
  const std::string layer = prefix + "encoder.layer.0.";
  const std::string words = prefix + "embeddings.";
  file.add_f32(words + "word_embeddings.weight", {kVocab, kWidth}, counting(kVocab * kWidth));
  file.add_f32(words + "position_embeddings.weight", {16, kWidth}, counting(16 * kWidth));
  file.add_f32(words + "token_type_embeddings.weight", {2, kWidth}, counting(2 * kWidth));
  norm(words + "LayerNorm");
  for (const char* name : {"self.query", "self.key", "self.value", "output.dense"}) {
    linear(layer + "attention." + name, kWidth, kWidth);
  }
  norm(layer + "attention.output.LayerNorm");
  linear(layer + "intermediate.dense", kHidden, kWidth);
  linear(layer + "output.dense", kWidth, kHidden);
  norm(layer + "output.LayerNorm");
  linear(prefix + "pooler.dense", kWidth, kWidth);
  if (has_head) linear("classifier", 1, kWidth);
  return file;
}

TEST_F(HfCheckpointTest, EncodersAndWhatSentenceTransformersSayOfThem) {
  const auto info_of = [&] {
    const auto opened = open_or_throw();
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    auto loaded = load_model(*opened, *backend, {});
    if (!loaded.ok()) throw std::runtime_error(loaded.error().to_string());
    return (*loaded)->info();
  };
  write_model(bert_json("BertModel"), bert_tensors("", false));
  EXPECT_TRUE(info_of().is_encoder);
  EXPECT_EQ(info_of().pooling, Pooling::mean) << "which most are trained with";
  EXPECT_TRUE(info_of().normalizes);
  EXPECT_EQ(info_of().num_classes, 0);
  fs::create_directories(folder_ / "1_Pooling");
  write("1_Pooling/config.json",
        R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false})");
  write("modules.json", R"([{"type":"sentence_transformers.models.Transformer"}])");
  EXPECT_EQ(info_of().pooling, Pooling::cls);
  EXPECT_FALSE(info_of().normalizes);
  write("modules.json", R"([{"type":"a.Transformer"},{"type":"a.Normalize"},5,{"type":7},{}])");
  EXPECT_TRUE(info_of().normalizes);
  write("1_Pooling/config.json", "{");
  write("modules.json", "[[[");
  EXPECT_EQ(info_of().pooling, Pooling::mean);
  write_model(bert_json("BertForSequenceClassification"), bert_tensors("bert.", true));
  EXPECT_EQ(info_of().num_classes, 1);
}

TEST_F(HfCheckpointTest, EncodersOfOtherKindsAreRefused) {
  for (const json& change : {json{{"hidden_act", "relu"}}, json{{"is_decoder", true}},
                             json{{"position_embedding_type", "relative_key"}}}) {
    json config = bert_json("BertModel");
    config.merge_patch(change);
    write_model(config, bert_tensors("", false));
    EXPECT_NE(error_text().find(change.begin().key()), std::string::npos) << error_text();
  }
}

}  // namespace
}  // namespace headrace
