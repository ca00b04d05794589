// OLMo 2: blocks are normed after instead of before, and queries and keys over all heads together.
// Sources: arXiv:2501.00656; transformers' Olmo2Config.
#include <array>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/blocks/mlp.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr std::array kOlmo2Names = {
    HfName{"model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm"},
    HfName{"model.layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm"},
};

struct Olmo2Layer {
  AttentionBlock attention;
  RmsNorm attention_post_norm;
  GatedMlp mlp;
  RmsNorm mlp_post_norm;
};

class Olmo2 final : public Decoder {
 public:
  Olmo2(ModelConfig config, Loader& load) : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const float eps = config_.norm_eps;
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      Olmo2Layer& layer = layers_.emplace_back();
      layer.attention = load_attention(load, i);
      load_row_norms(load, i, layer.attention);
      layer.attention_post_norm = load.norm(layer_tensor(i, "post_attention_norm"), embedding, eps);
      layer.mlp = load_gated_mlp(load, i, Activation::silu);
      layer.mlp_post_norm = load.norm(layer_tensor(i, "post_ffw_norm"), embedding, eps);
    }
  }

 private:
  void run_layer(const LayerStep& step) override {
    const Olmo2Layer& layer = layers_[step.index];
    attend(layer.attention, step.x, step, Tensor());
    layer.attention_post_norm.add_to(backend_, step.x, step.delta);
    layer.mlp.apply(backend_, step.x, step.buffers, step.delta, Tensor());
    layer.mlp_post_norm.add_to(backend_, step.x, step.delta);
  }

  std::vector<Olmo2Layer> layers_;
};

ModelConfig olmo2_config(ConfigReader& reader) {
  return read_decoder_config(reader, "olmo2");
}

std::unique_ptr<LoadedModel> load_olmo2(ModelConfig config, Loader& load) {
  return std::make_unique<Olmo2>(std::move(config), load);
}

void read_hf_olmo2(HfModel& model) {
  read_hf_decoder(model);
  model.add_names(kOlmo2Names);
  expect_silu(model);
  read_hf_rope(model);
}

void write_hf_olmo2(HfWriter& out) {
  write_hf_decoder(out, "olmo2");
  write_hf_rope(out);
}

}  // namespace

extern const Architecture olmo2_architecture{"olmo2",       {"Olmo2ForCausalLM"}, RopeRows::halves,
                                             olmo2_config,  load_olmo2,           read_hf_olmo2,
                                             write_hf_olmo2};

}  // namespace headrace
