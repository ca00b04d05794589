// GPT-2: learned positions, layer norms, a plain feed-forward block, biases everywhere. Sources:
// "Language Models are Unsupervised Multitask Learners" (2019); transformers' GPT2Config. Hugging
// Face files keep projections as [in, out].
#include <array>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/blocks/absolute_positions.h"
#include "model/blocks/mlp.h"
#include "model/hf/hf_activation.h"

namespace headrace {
namespace {

constexpr std::array kGpt2Names = {
    HfName{"transformer.wte", "token_embd"},
    HfName{"transformer.wpe", "position_embd"},
    HfName{"transformer.ln_f", "output_norm"},
    HfName{"lm_head", "output"},
    HfName{"transformer.h.#.ln_1", "blk.#.attn_norm"},
    HfName{"transformer.h.#.attn.c_attn", "blk.#.attn_qkv", HfChange::transpose},
    HfName{"transformer.h.#.attn.c_proj", "blk.#.attn_output", HfChange::transpose},
    HfName{"transformer.h.#.ln_2", "blk.#.ffn_norm"},
    HfName{"transformer.h.#.mlp.c_fc", "blk.#.ffn_up", HfChange::transpose},
    HfName{"transformer.h.#.mlp.c_proj", "blk.#.ffn_down", HfChange::transpose},
    // Masks that older checkpoints hold.
    HfName{"transformer.h.#.attn", "", HfChange::skip},
    HfName{"transformer.h.#.attn.masked_bias", "", HfChange::skip},
};

struct Gpt2Layer {
  Norm attention_norm;
  AttentionBlock attention;
  Norm mlp_norm;
  Mlp mlp;
};

class Gpt2 final : public Decoder {
 public:
  Gpt2(ModelConfig config, Loader& load) : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const int64_t hidden = config_.feed_forward_length;
    positions_.table = load.matrix("position_embd", config_.context_length, embedding);
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      Gpt2Layer& layer = layers_.emplace_back();
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
    positions_.add_to(backend_, step.positions, x, delta);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const Gpt2Layer& layer = layers_[i];
      layer.attention.apply(backend_, normed_input(layer.attention_norm, x), Tensor(),
                            cache_of(step, i), layer_in_group(i), a, delta, x);
      layer.mlp.apply(backend_, normed_input(layer.mlp_norm, x), a, delta, x);
    }
    return head_.apply(backend_, x, step, a);
  }

 private:
  AbsolutePositions positions_;
  std::vector<Gpt2Layer> layers_;
};

ModelConfig gpt2_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "gpt2", NormKind::layer, PositionKind::absolute);
  config.activation = read_activation(reader, Activation::gelu_tanh);
  return config;
}

std::unique_ptr<LoadedModel> load_gpt2(ModelConfig config, Loader& load) {
  return std::make_unique<Gpt2>(std::move(config), load);
}

void read_hf_gpt2(HfModel& model) {
  const HfConfig& config = model.config();
  model.add_names(kGpt2Names);
  model.copy_int("context_length", "n_positions");
  model.copy_int("embedding_length", "n_embd");
  model.copy_int("block_count", "n_layer");
  model.copy_int("attention.head_count", "n_head");
  model.copy_int("feed_forward_length", "n_inner", 4 * config.integer("n_embd").value_or(0));
  model.copy_float("attention.layer_norm_epsilon", "layer_norm_epsilon", 1e-5);
  copy_hf_activation(model, "activation_function", "gelu_new");
  model.expect_bool("scale_attn_by_inverse_layer_idx", false);
  model.expect_bool("add_cross_attention", false);
  if (!config.boolean("scale_attn_weights").value_or(true)) {
    model.set_float("attention.scale", 1, "scale_attn_weights");
  }
}

}  // namespace

extern const Architecture gpt2_architecture{"gpt2",      {"GPT2LMHeadModel"}, RopeRows::halves,
                                            gpt2_config, load_gpt2,           read_hf_gpt2};

}  // namespace headrace
