// See pre_norm.h.
#include "model/decoders/pre_norm.h"

#include <array>
#include <optional>
#include <utility>

#include "model/blocks/moe.h"

namespace headrace {
namespace {

struct PreNormLayer {
  RmsNorm attention_norm;
  AttentionBlock attention;
  RmsNorm mlp_norm;
  GatedMlp mlp;
  std::optional<MoeBlock> experts;  ///< instead of mlp
};

class PreNormDecoder final : public Decoder {
 public:
  PreNormDecoder(ModelConfig config, Loader& load, const PreNormTraits& traits)
      : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const float eps = config_.norm_eps;
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      PreNormLayer& layer = layers_.emplace_back();
      layer.attention_norm = load.norm(layer_tensor(i, "attn_norm"), embedding, eps);
      layer.attention = load_attention(load, i);
      if (traits.has_head_norms) load_head_norms(load, i, layer.attention);
      if (traits.has_row_norms) load_row_norms(load, i, layer.attention);
      layer.mlp_norm = load.norm(layer_tensor(i, "ffn_norm"), embedding, eps);
      if (config_.has_experts(static_cast<size_t>(i))) {
        layer.experts = load_moe(load, i, *config_.moe, embedding);
        layer.experts->activation = traits.activation;
        layer.experts->scale = config_.residual_scale;
      } else {
        layer.mlp = traits.is_gate_fused ? load_fused_mlp(load, i, traits.activation)
                                         : load_gated_mlp(load, i, traits.activation);
      }
    }
  }

 private:
  void run_layer(const LayerStep& step) override {
    const PreNormLayer& layer = layers_[step.index];
    attend(layer.attention, layer.attention_norm.input(step.x), step, step.x);
    const LinearInput normed = layer.mlp_norm.input(step.x);
    if (layer.experts) {
      layer.experts->apply(backend_, normed, step.buffers, step.delta, step.x);
    } else {
      layer.mlp.apply(backend_, normed, step.buffers, step.delta, step.x);
    }
  }

  GatedMlp load_fused_mlp(Loader& load, int64_t index, Activation activation) const {
    const int64_t embedding = config_.embedding_length;
    const int64_t hidden = config_.feed_forward_length;
    const std::array sizes = {hidden, hidden};
    auto parts = load.fused_linear(layer_tensor(index, "ffn_up"), sizes, embedding);
    return {.gate = std::move(parts[0]),
            .up = std::move(parts[1]),
            .down = load.linear(layer_tensor(index, "ffn_down"), embedding, hidden),
            .activation = activation,
            .scale = config_.residual_scale};
  }

  std::vector<PreNormLayer> layers_;
};

}  // namespace

std::unique_ptr<Decoder> load_pre_norm(ModelConfig config, Loader& load,
                                       const PreNormTraits& traits) {
  return std::make_unique<PreNormDecoder>(std::move(config), load, traits);
}

}  // namespace headrace
