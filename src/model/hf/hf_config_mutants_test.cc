// Values, keys and bytes of configs changed, of decoders and encoders: a config, or an error of one
// line that names a place.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/hf_config_input.h"

namespace headrace {
namespace {

using nlohmann::json;

constexpr int kNumMutants = 10'000;

/// Keys that decoders built like Llama, GPT-2, XGLM and StarCoder2 read, so that each architecture
/// finds its own.
json decoder_json() {
  return {{"hidden_size", 32},
          {"intermediate_size", 12},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"max_position_embeddings", 64},
          {"vocab_size", 11},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", false},
          {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
          {"n_embd", 32},
          {"n_layer", 2},
          {"n_head", 2},
          {"n_positions", 64},
          {"d_model", 32},
          {"num_layers", 2},
          {"attention_heads", 2},
          {"ffn_dim", 12},
          {"num_experts", 4},
          {"num_local_experts", 4},
          {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 12},
          {"shared_expert_intermediate_size", 12},
          {"sliding_window", 16},
          {"query_pre_attn_scalar", 4}};
}

json encoder_json() {
  return {{"hidden_size", 32},
          {"intermediate_size", 12},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"max_position_embeddings", 16},
          {"vocab_size", 11},
          {"hidden_act", "gelu"},
          {"layer_norm_eps", 1e-12},
          {"position_embedding_type", "absolute"},
          {"is_decoder", false},
          {"architectures", {"BertModel"}}};
}

class ConfigMutants {
 public:
  explicit ConfigMutants(unsigned seed) : random_(seed) {}

  std::string of(json config) {
    for (size_t edits = random_() % 3 + 1; edits > 0; --edits) {
      auto member = config.begin();
      std::advance(member, static_cast<int64_t>(random_() % config.size()));
      const json& value = values_[random_() % values_.size()];
      if (random_() % 3 == 0) {
        config[keys_[random_() % keys_.size()]] = value;
      } else if (random_() % 4 == 0) {
        config.erase(member);
      } else {
        *member = value;
      }
    }
    std::string text = config.dump();
    if (random_() % 4 == 0) text[random_() % text.size()] = static_cast<char>(random_());
    return text;
  }

 private:
  std::mt19937 random_;
  const std::vector<json> values_ = {nullptr,
                                     true,
                                     -1,
                                     0,
                                     1,
                                     3,
                                     1e300,
                                     "x",
                                     "",
                                     json::array(),
                                     json::object(),
                                     4294967296,
                                     0.5,
                                     {1, 2},
                                     {1, 0},
                                     {{"factor", 2}},
                                     {{"rope_type", "dynamic"}, {"factor", 2.0}},
                                     {{"quant_method", "gptq"}},
                                     {"full_attention", "sliding_attention"},
                                     "yarn",
                                     "longrope"};
  const std::vector<std::string> keys_ = {"rope_scaling",
                                          "rope_theta",
                                          "head_dim",
                                          "sliding_window",
                                          "layer_types",
                                          "text_config",
                                          "rope_type",
                                          "hidden_act",
                                          "activation_function",
                                          "no_rope_layers",
                                          "mlp_only_layers",
                                          "decoder_sparse_step",
                                          "use_sliding_window",
                                          "partial_rotary_factor",
                                          "quantization_config",
                                          "original_max_position_embeddings"};
};

bool is_encoder(const Architecture& architecture) {
  return architecture.gguf_name == "bert";
}

json config_of(const Architecture& architecture) {
  return is_encoder(architecture) ? encoder_json() : decoder_json();
}

TEST(HfConfigMutants, UnchangedOnesAreGood) {
  for (const Architecture* one : architectures()) {
    EXPECT_EQ(test::config_fault(*one, config_of(*one).dump()), "") << one->gguf_name;
  }
}

TEST(HfConfigMutants, GiveAConfigOrALine) {
  ConfigMutants mutants(11);
  const auto all = architectures();
  int num_refused = 0;
  for (int i = 0; i < kNumMutants; ++i) {
    // Every other one is an encoder's.
    const Architecture& one =
        i % 2 == 0 ? *all[static_cast<size_t>(i / 2) % all.size()] : *find_architecture("bert");
    const std::string text = mutants.of(config_of(one));
    const std::string fault = test::config_fault(one, text);
    num_refused += fault.empty() ? 0 : 1;
    ASSERT_EQ(fault.find('\n'), std::string::npos) << fault;
    if (!fault.empty()) {
      ASSERT_EQ(fault.rfind("config.json", 0) == 0 || fault.find(": ") != std::string::npos, true)
          << fault;
    }
  }
  EXPECT_GT(num_refused, kNumMutants / 4);
  EXPECT_LT(num_refused, kNumMutants);
}

TEST(HfConfigMutants, EveryTruncationIsRefused) {
  for (const Architecture* one : architectures()) {
    const std::string text = config_of(*one).dump();
    for (size_t size = 0; size < text.size(); ++size) {
      const std::string fault = test::config_fault(*one, std::string_view(text).substr(0, size));
      ASSERT_NE(fault.find("expected a JSON object"), std::string::npos) << size << ": " << fault;
    }
  }
}

}  // namespace
}  // namespace headrace
