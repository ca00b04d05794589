// StarCoder2: rotary positions, layer norms, a plain feed-forward block, biases, a sliding window.
// Sources: arXiv:2402.19173; transformers' Starcoder2Config.
#include <array>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/blocks/mlp.h"
#include "model/hf/hf_activation.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr std::array kStarcoder2Names = {
    HfName{"model.layers.#.mlp.c_fc", "blk.#.ffn_up"},
    HfName{"model.layers.#.mlp.c_proj", "blk.#.ffn_down"},
};

struct Starcoder2Layer {
  Norm attention_norm;
  AttentionBlock attention;
  Norm mlp_norm;
  Mlp mlp;
};

class Starcoder2 final : public Decoder {
 public:
  Starcoder2(ModelConfig config, Loader& load) : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const int64_t hidden = config_.feed_forward_length;
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      Starcoder2Layer& layer = layers_.emplace_back();
      layer.attention_norm = load_norm(load, layer_tensor(i, "attn_norm"));
      layer.attention = load_attention(load, i);
      layer.mlp_norm = load_norm(load, layer_tensor(i, "ffn_norm"));
      layer.mlp.up = load.linear(layer_tensor(i, "ffn_up"), hidden, embedding);
      layer.mlp.down = load.linear(layer_tensor(i, "ffn_down"), embedding, hidden);
      layer.mlp.activation = config_.activation;
    }
  }

  Tensor forward(const StepInput& step) override {
    Activations& a = *activations_;
    const auto rows = static_cast<int64_t>(step.tokens.size());
    const Tensor x = a.x.view(rows);
    const Tensor delta = a.delta.view(rows);

    embedding_.apply(backend_, step.tokens, x);
    turn(step.positions);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const Starcoder2Layer& layer = layers_[i];
      layer.attention.apply(backend_, normed_input(layer.attention_norm, x), angles_of(i),
                            cache_of(step, i), layer_in_group(i), a, delta, x);
      layer.mlp.apply(backend_, normed_input(layer.mlp_norm, x), a, delta, x);
    }
    return head_.apply(backend_, x, step, a);
  }

 private:
  std::vector<Starcoder2Layer> layers_;
};

ModelConfig starcoder2_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "starcoder2", NormKind::layer);
  config.activation = read_activation(reader, Activation::gelu_tanh);
  return config;
}

std::unique_ptr<LoadedModel> load_starcoder2(ModelConfig config, Loader& load) {
  return std::make_unique<Starcoder2>(std::move(config), load);
}

void read_hf_starcoder2(HfModel& model) {
  read_hf_decoder(model);
  model.add_names(kStarcoder2Names);
  model.copy_float("attention.layer_norm_epsilon", "norm_epsilon", 1e-5);
  copy_hf_activation(model, "hidden_act", "gelu_pytorch_tanh");
  const int64_t window = model.config().integer("sliding_window").value_or(0);
  if (window > 0) model.set_int("attention.sliding_window", window, "sliding_window");
  read_hf_rope(model);
}

}  // namespace

extern const Architecture starcoder2_architecture{"starcoder2",     {"Starcoder2ForCausalLM"},
                                                  RopeRows::halves, starcoder2_config,
                                                  load_starcoder2,  read_hf_starcoder2};

}  // namespace headrace
