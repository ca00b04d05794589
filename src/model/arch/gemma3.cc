// Gemma 3, text only: norms before and after each block, norms of queries and keys, five layers
// with a sliding window to one without, each kind with its own rotary base. Sources:
// arXiv:2503.19786, and query_pre_attn_scalar of the published configs. GGUF files store the norms'
// weights with the 1 already added.
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "model/arch/arch.h"
#include "model/blocks/mlp.h"

namespace headrace {
namespace {

constexpr int64_t k27BLayers = 62;
// Far above any; models may have fewer layers than the period, none of which sees everything then.
constexpr int64_t kMaxPeriod = 4096;

struct Gemma3Layer {
  RmsNorm attention_norm;
  AttentionBlock attention;
  RmsNorm attention_post_norm;
  RmsNorm mlp_norm;
  GatedMlp mlp;
  RmsNorm mlp_post_norm;
};

class Gemma3 final : public Decoder {
 public:
  Gemma3(ModelConfig config, Loader& load) : Decoder(std::move(config), load) {
    const int64_t embedding = config_.embedding_length;
    const int64_t hidden = config_.feed_forward_length;
    const float eps = config_.norm_eps;
    embedding_.scale = std::sqrt(static_cast<float>(embedding));
    for (int64_t i = 0; i < config_.num_layers; ++i) {
      Gemma3Layer& layer = layers_.emplace_back();
      layer.attention_norm = load.norm(layer_tensor(i, "attn_norm"), embedding, eps);
      layer.attention = load_attention(load, i);
      std::tie(layer.attention.q_norm, layer.attention.k_norm) =
          load.head_norms(layer_tensor(i, "attn_q_norm"), layer_tensor(i, "attn_k_norm"),
                          {.head_dim = config_.head_dim, .rope_dims = config_.rope.dims}, eps);
      layer.attention_post_norm = load.norm(layer_tensor(i, "post_attention_norm"), embedding, eps);
      layer.mlp_norm = load.norm(layer_tensor(i, "ffn_norm"), embedding, eps);
      layer.mlp.gate = load.linear(layer_tensor(i, "ffn_gate"), hidden, embedding);
      layer.mlp.up = load.linear(layer_tensor(i, "ffn_up"), hidden, embedding);
      layer.mlp.down = load.linear(layer_tensor(i, "ffn_down"), embedding, hidden);
      layer.mlp.activation = Activation::gelu_tanh;
      layer.mlp_post_norm = load.norm(layer_tensor(i, "post_ffw_norm"), embedding, eps);
    }
  }

  Tensor forward(const StepInput& step) override {
    Activations& a = *activations_;
    const auto rows = static_cast<int64_t>(step.tokens.size());
    const Tensor x = a.x.view(rows);
    const Tensor delta = a.delta.view(rows);

    embedding_.apply(backend_, step.tokens, x);
    const Tensor global_angles = rope_.angles(step.positions);
    const Tensor local_angles = rope_window_->angles(step.positions);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_unwanted(step)) return {};
      const Gemma3Layer& layer = layers_[i];
      const Tensor& angles = config_.is_window_layer[i] ? local_angles : global_angles;
      layer.attention.apply(backend_, layer.attention_norm.input(x), angles, cache_of(step, i),
                            layer_in_group(i), a, delta, Tensor());
      layer.attention_post_norm.add_to(backend_, x, delta);
      layer.mlp.apply(backend_, layer.mlp_norm.input(x), a, delta, Tensor());
      layer.mlp_post_norm.add_to(backend_, x, delta);
    }
    return head_.apply(backend_, x, step.logit_rows, step.num_top, a);
  }

 private:
  std::vector<Gemma3Layer> layers_;
};

}  // namespace

ModelConfig gemma3_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "gemma3");
  config.attention_soft_cap =
      static_cast<float>(reader.optional_float("attn_logit_softcapping", 0, 0));
  config.final_soft_cap =
      static_cast<float>(reader.optional_float("final_logit_softcapping", 0, 0));

  // Files do not say how queries are scaled. The 27B model (62 layers) scales by its width for each
  // head, 168, and not by the head's size.
  if (config.num_layers == k27BLayers && reader.optional_float("attention.scale", 0, 0) == 0) {
    config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.embedding_length) /
                                              static_cast<float>(config.num_heads));
  }

  // Every sixth layer sees everything; a file may say otherwise by a period or layer by layer.
  const int64_t period =
      reader.optional_ints("attention.sliding_window_pattern").empty()
          ? reader.optional_int("attention.sliding_window_pattern", 1, kMaxPeriod, 6)
          : 0;
  const std::vector<int64_t> flags = reader.optional_ints("attention.sliding_window_pattern");
  if (period == 0 && static_cast<int64_t>(flags.size()) != config.num_layers) {
    reader.fail(ErrorCode::corrupt_data, "attention.sliding_window_pattern",
                "expected one entry for each of the " + std::to_string(config.num_layers) +
                    " layers, found " + std::to_string(flags.size()));
    return config;
  }
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const auto at = static_cast<size_t>(i);
    config.is_window_layer[at] =
        config.window > 0 && (period > 0 ? (i + 1) % period != 0 : flags[at] != 0);
  }

  // Window layers keep the short context they were trained with: own base, no scaling.
  config.rope_window = RopeConfig{.base = reader.optional_float("rope.freq_base_swa", 1, 10000),
                                  .dims = config.rope.dims};
  return config;
}

std::unique_ptr<Decoder> load_gemma3(ModelConfig config, Loader& load) {
  return std::make_unique<Gemma3>(std::move(config), load);
}

}  // namespace headrace
