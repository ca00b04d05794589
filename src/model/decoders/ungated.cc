// See ungated.h.
#include "model/decoders/ungated.h"

#include <utility>
#include <vector>

#include "model/blocks/mlp.h"

namespace headrace {
namespace {

struct UngatedLayer {
  Norm attention_norm;
  AttentionBlock attention;
  Norm mlp_norm;
  Mlp mlp;
};

class UngatedDecoder final : public Decoder {
 public:
  UngatedDecoder(ModelConfig config, Loader& load, AbsolutePositions positions)
      : Decoder(std::move(config), load), positions_(std::move(positions)) {
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      UngatedLayer& layer = layers_.emplace_back();
      layer.attention_norm = load_norm(load, layer_tensor(i, "attn_norm"));
      layer.attention = load_attention(load, i);
      layer.mlp_norm = load_norm(load, layer_tensor(i, "ffn_norm"));
      layer.mlp = load_mlp(load, i, config_.activation);
    }
  }

  Tensor compute(const StepInput& step) override {
    Activations& a = *activations_;
    const auto rows = static_cast<int64_t>(step.tokens.size());
    const Tensor x = a.x.view(rows);
    const Tensor delta = a.delta.view(rows);

    embedding_.apply(backend_, step.tokens, x);
    if (positions_.table) positions_.add_to(backend_, step.positions, x, delta);
    turn(step.positions);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const UngatedLayer& layer = layers_[i];
      layer.attention.apply(backend_, normed_input(layer.attention_norm, x), angles_of(i),
                            cache_of(step, i), layer_in_group(i), a, delta, x);
      layer.mlp.apply(backend_, normed_input(layer.mlp_norm, x), a, delta, x);
    }
    return head_.apply(backend_, x, step, a);
  }

 private:
  AbsolutePositions positions_;
  std::vector<UngatedLayer> layers_;
};

}  // namespace

std::unique_ptr<Decoder> load_ungated(ModelConfig config, Loader& load,
                                      AbsolutePositions positions) {
  return std::make_unique<UngatedDecoder>(std::move(config), load, std::move(positions));
}

}  // namespace headrace
