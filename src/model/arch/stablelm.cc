// StableLM: layer norms, part of each head rotated, perhaps norms over the heads of queries and
// keys, and attention beside the feed-forward block. Sources: arXiv:2402.17834; transformers'
// StableLmConfig.
#include <array>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/blocks/mlp.h"
#include "model/hf/hf_keys.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr std::array kStableLmNames = {
    HfName{"model.layers.#.self_attn.q_layernorm.norms.#", "blk.#.attn_q_norm", HfChange::stack},
    HfName{"model.layers.#.self_attn.k_layernorm.norms.#", "blk.#.attn_k_norm", HfChange::stack},
};

struct StableLmLayer {
  Norm attention_norm;
  AttentionBlock attention;
  Norm mlp_norm;  ///< of layers that are not parallel
  GatedMlp mlp;
};

class StableLm final : public Decoder {
 public:
  StableLm(ModelConfig config, Loader& load) : Decoder(std::move(config), load) {
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      StableLmLayer& layer = layers_.emplace_back();
      layer.attention_norm = load_norm(load, layer_tensor(i, "attn_norm"));
      layer.attention = load_attention(load, i);
      if (load.has(layer_tensor(i, "attn_q_norm"))) load_layer_norms(load, i, layer.attention);
      if (!config_.is_parallel) layer.mlp_norm = load_norm(load, layer_tensor(i, "ffn_norm"));
      layer.mlp = load_gated_mlp(load, i, Activation::silu);
    }
  }

 private:
  void run_layer(const LayerStep& step) override {
    const StableLmLayer& layer = layers_[step.index];
    Activations& a = step.buffers;
    const LinearInput normed = normed_input(layer.attention_norm, step.x);
    if (config_.is_parallel) {
      // Side by side, the feed-forward block reads x before attention has been added.
      attend(layer.attention, normed, step, Tensor());
      const Tensor beside = a.attended.view(step.x.rows);
      layer.mlp.apply(backend_, normed, a, beside, Tensor());
      backend_.add(step.x, step.delta);
      backend_.add(step.x, beside);
    } else {
      attend(layer.attention, normed, step, step.x);
      layer.mlp.apply(backend_, normed_input(layer.mlp_norm, step.x), a, step.delta, step.x);
    }
  }

  void load_layer_norms(Loader& load, int64_t index, AttentionBlock& attention) const {
    const float eps = config_.norm_eps;
    const int64_t dim = config_.head_dim;
    attention.q_layer_norm =
        load.head_layer_norm(layer_tensor(index, "attn_q_norm"), config_.num_heads, dim, eps);
    attention.k_layer_norm =
        load.head_layer_norm(layer_tensor(index, "attn_k_norm"), config_.num_kv_heads, dim, eps);
  }

  std::vector<StableLmLayer> layers_;
};

ModelConfig stablelm_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "stablelm", NormKind::layer);
  config.is_parallel = reader.optional_bool("use_parallel_residual", false);
  if (config.head_dim * config.num_heads != config.embedding_length) {
    reader.fail(ErrorCode::unsupported, "attention.key_length",
                "heads that do not make up the embedding are not built in");
  }
  return config;
}

std::unique_ptr<LoadedModel> load_stablelm(ModelConfig config, Loader& load) {
  return std::make_unique<StableLm>(std::move(config), load);
}

constexpr std::array kStableLmKeys = {
    HfKey{"attention.layer_norm_epsilon", "layer_norm_eps", HfNumber{&ModelConfig::norm_eps, 1e-5}},
    HfKey{"use_parallel_residual", "use_parallel_residual",
          HfFlag{&ModelConfig::is_parallel, false}},
};

void read_hf_stablelm(HfModel& model) {
  constexpr double kRotatedPart = 0.25;
  read_hf_decoder(model);
  model.add_names(kStableLmNames);
  expect_silu(model);
  read_hf_keys(model, kStableLmKeys);
  read_hf_rope(model, {.partial_factor = kRotatedPart});
}

void write_hf_stablelm(HfWriter& out) {
  write_hf_decoder(out, "stablelm");
  write_hf_keys(out, kStableLmKeys);
  out.set_bool("use_qkv_bias", out.has_tensor("blk.0.attn_q.bias"));
  out.set_bool("qk_layernorm", out.has_tensor("blk.0.attn_q_norm.weight"));
  out.set_float("partial_rotary_factor", 1);  // where all of a head is rotated
  write_hf_rope(out);
}

}  // namespace

extern const Architecture stablelm_architecture{
    "stablelm",    {"StableLmForCausalLM"}, RopeRows::halves, stablelm_config,
    load_stablelm, read_hf_stablelm,        write_hf_stablelm};

}  // namespace headrace
