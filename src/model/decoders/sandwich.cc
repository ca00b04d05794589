// See sandwich.h.
#include "model/decoders/sandwich.h"

#include <utility>
#include <vector>

#include "model/blocks/mlp.h"

namespace headrace {
namespace {

struct SandwichLayer {
  RmsNorm attention_norm;
  AttentionBlock attention;
  RmsNorm attention_post_norm;
  RmsNorm mlp_norm;
  GatedMlp mlp;
  RmsNorm mlp_post_norm;
};

class SandwichDecoder final : public Decoder {
 public:
  SandwichDecoder(ModelConfig config, Loader& load, const SandwichTraits& traits)
      : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const float eps = config_.norm_eps;
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      SandwichLayer& layer = layers_.emplace_back();
      layer.attention_norm = load.norm(layer_tensor(i, "attn_norm"), embedding, eps);
      layer.attention = load_attention(load, i);
      if (traits.has_head_norms) load_head_norms(load, i, layer.attention);
      layer.attention_post_norm = load.norm(layer_tensor(i, "post_attention_norm"), embedding, eps);
      layer.mlp_norm = load.norm(layer_tensor(i, "ffn_norm"), embedding, eps);
      layer.mlp = load_gated_mlp(load, i, Activation::gelu_tanh);
      layer.mlp_post_norm = load.norm(layer_tensor(i, "post_ffw_norm"), embedding, eps);
    }
  }

 private:
  void run_layer(const LayerStep& step) override {
    const SandwichLayer& layer = layers_[step.index];
    attend(layer.attention, layer.attention_norm.input(step.x), step, Tensor());
    layer.attention_post_norm.add_to(backend_, step.x, step.delta);
    layer.mlp.apply(backend_, layer.mlp_norm.input(step.x), step.buffers, step.delta, Tensor());
    layer.mlp_post_norm.add_to(backend_, step.x, step.delta);
  }

  std::vector<SandwichLayer> layers_;
};

}  // namespace

std::unique_ptr<Decoder> load_sandwich(ModelConfig config, Loader& load,
                                       const SandwichTraits& traits) {
  return std::make_unique<SandwichDecoder>(std::move(config), load, traits);
}

}  // namespace headrace
