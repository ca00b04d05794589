// StarCoder2: rotary positions, layer norms, a plain feed-forward block, biases, a sliding window.
// Sources: arXiv:2402.19173; transformers' Starcoder2Config.
#include <array>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/ungated.h"
#include "model/hf/hf_activation.h"
#include "model/hf/hf_keys.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr std::array kStarcoder2Names = {
    HfName{"model.layers.#.mlp.c_fc", "blk.#.ffn_up"},
    HfName{"model.layers.#.mlp.c_proj", "blk.#.ffn_down"},
};

ModelConfig starcoder2_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "starcoder2", NormKind::layer);
  config.activation = read_activation(reader, Activation::gelu_tanh);
  return config;
}

std::unique_ptr<LoadedModel> load_starcoder2(ModelConfig config, Loader& load) {
  return load_ungated(std::move(config), load);
}

constexpr std::array kStarcoder2Keys = {
    HfKey{"attention.layer_norm_epsilon", "norm_epsilon", HfNumber{&ModelConfig::norm_eps, 1e-5}},
};

void read_hf_starcoder2(HfModel& model) {
  read_hf_decoder(model);
  model.add_names(kStarcoder2Names);
  read_hf_keys(model, kStarcoder2Keys);
  copy_hf_activation(model, "hidden_act", "gelu_pytorch_tanh");
  const int64_t window = model.config().integer("sliding_window").value_or(0);
  if (window > 0) model.set_int("attention.sliding_window", window, "sliding_window");
  read_hf_rope(model);
}

void write_hf_starcoder2(HfWriter& out) {
  const ModelConfig& config = out.config();
  write_hf_decoder(out, "starcoder2");
  write_hf_keys(out, kStarcoder2Keys);
  out.set_text("hidden_act", hf_activation_name(config.activation));
  out.set_bool("use_bias", out.has_tensor("blk.0.attn_q.bias"));
  write_hf_window(out);
  write_hf_rope(out);
}

}  // namespace

extern const Architecture starcoder2_architecture{
    "starcoder2",    {"Starcoder2ForCausalLM"}, RopeRows::halves,   starcoder2_config,
    load_starcoder2, read_hf_starcoder2,        write_hf_starcoder2};

}  // namespace headrace
