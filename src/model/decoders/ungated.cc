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

 private:
  void embed(const StepInput& step, const Tensor& x, const Tensor& scratch) override {
    Decoder::embed(step, x, scratch);
    if (positions_.table) positions_.add_to(backend_, step.positions, x, scratch);
  }

  void run_layer(const LayerStep& step) override {
    const UngatedLayer& layer = layers_[step.index];
    attend(layer.attention, normed_input(layer.attention_norm, step.x), step, step.x);
    layer.mlp.apply(backend_, normed_input(layer.mlp_norm, step.x), step.buffers, step.delta,
                    step.x);
  }

  AbsolutePositions positions_;
  std::vector<UngatedLayer> layers_;
};

}  // namespace

std::unique_ptr<Decoder> load_ungated(ModelConfig config, Loader& load,
                                      AbsolutePositions positions) {
  return std::make_unique<UngatedDecoder>(std::move(config), load, std::move(positions));
}

}  // namespace headrace
