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

  Tensor compute(const StepInput& step) override {
    Activations& a = *activations_;
    const auto rows = static_cast<int64_t>(step.tokens.size());
    const Tensor x = a.x.view(rows);
    const Tensor delta = a.delta.view(rows);

    embedding_.apply(backend_, step.tokens, x);
    turn(step.positions);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const PreNormLayer& layer = layers_[i];
      layer.attention.apply(backend_, layer.attention_norm.input(x), angles_of(i),
                            cache_of(step, i), layer_in_group(i), a, delta, x);
      const LinearInput normed = layer.mlp_norm.input(x);
      if (layer.experts) {
        layer.experts->apply(backend_, normed, a, delta, x);
      } else {
        layer.mlp.apply(backend_, normed, a, delta, x);
      }
    }
    return head_.apply(backend_, x, step, a);
  }

 private:
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
