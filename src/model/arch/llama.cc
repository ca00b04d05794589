// Llama and models of its shape (SmolLM2, Mistral, ...): pre-norm layers of rotary attention and a
// SiLU-gated MLP. Source: arXiv:2302.13971, arXiv:2307.09288.
#include <utility>
#include <vector>

#include "model/arch/arch.h"
#include "model/blocks/mlp.h"

namespace headrace {
namespace {

struct LlamaLayer {
  RmsNorm attention_norm;
  AttentionBlock attention;
  RmsNorm mlp_norm;
  GatedMlp mlp;
};

class Llama final : public Decoder {
 public:
  Llama(ModelConfig config, Loader& load) : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const int64_t hidden = config_.feed_forward_length;
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      LlamaLayer& layer = layers_.emplace_back();
      layer.attention_norm = load.norm(layer_tensor(i, "attn_norm"), embedding, config_.norm_eps);
      layer.attention = load_attention(load, i);
      layer.mlp_norm = load.norm(layer_tensor(i, "ffn_norm"), embedding, config_.norm_eps);
      layer.mlp.gate = load.linear(layer_tensor(i, "ffn_gate"), hidden, embedding);
      layer.mlp.up = load.linear(layer_tensor(i, "ffn_up"), hidden, embedding);
      layer.mlp.down = load.linear(layer_tensor(i, "ffn_down"), embedding, hidden);
    }
  }

  Tensor forward(const StepInput& step) override {
    Activations& a = *activations_;
    const auto rows = static_cast<int64_t>(step.tokens.size());
    const Tensor x = a.x.view(rows);
    const Tensor delta = a.delta.view(rows);

    embedding_.apply(backend_, step.tokens, x);
    const Tensor angles = rope_.angles(step.positions);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const LlamaLayer& layer = layers_[i];
      layer.attention.apply(backend_, layer.attention_norm.input(x), angles, cache_of(step, i),
                            layer_in_group(i), a, delta, x);
      layer.mlp.apply(backend_, layer.mlp_norm.input(x), a, delta, x);
    }
    return head_.apply(backend_, x, step.logit_rows, step.num_top, a);
  }

 private:
  std::vector<LlamaLayer> layers_;
};

}  // namespace

ModelConfig llama_config(ConfigReader& reader) {
  return read_decoder_config(reader, "llama");
}

std::unique_ptr<Decoder> load_llama(ModelConfig config, Loader& load) {
  return std::make_unique<Llama>(std::move(config), load);
}

}  // namespace headrace
