// XGLM: sinusoidal positions, otherwise like GPT-2 with separate projections. Sources:
// arXiv:2112.10668; transformers' XGLMConfig. "xglm" is this project's own name for it in GGUF.
#include <array>
#include <cmath>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/ungated.h"
#include "model/hf/hf_activation.h"
#include "model/hf/hf_keys.h"

namespace headrace {
namespace {

// The first token has position 2 in the table.
constexpr int64_t kXglmOffset = 2;
// PyTorch's default, which the layer norms of the original keep.
constexpr double kXglmNormEps = 1e-5;

constexpr std::array kXglmNames = {
    HfName{"model.embed_tokens", "token_embd"},
    HfName{"model.layer_norm", "output_norm"},
    HfName{"lm_head", "output"},
    HfName{"model.layers.#.self_attn_layer_norm", "blk.#.attn_norm"},
    HfName{"model.layers.#.self_attn.q_proj", "blk.#.attn_q"},
    HfName{"model.layers.#.self_attn.k_proj", "blk.#.attn_k"},
    HfName{"model.layers.#.self_attn.v_proj", "blk.#.attn_v"},
    HfName{"model.layers.#.self_attn.out_proj", "blk.#.attn_output"},
    HfName{"model.layers.#.final_layer_norm", "blk.#.ffn_norm"},
    HfName{"model.layers.#.fc1", "blk.#.ffn_up"},
    HfName{"model.layers.#.fc2", "blk.#.ffn_down"},
    HfName{"model.embed_positions.weights", "", HfChange::skip},
};

ModelConfig xglm_config(ConfigReader& reader) {
  constexpr int64_t kMostTableElements = int64_t{1} << 28;
  ModelConfig config = read_decoder_config(reader, "xglm", NormKind::layer, PositionKind::absolute);
  config.activation = read_activation(reader, Activation::gelu);
  config.embedding_scale = static_cast<float>(reader.optional_float("embedding_scale", 0, 1));
  if (config.embedding_length < 4 ||
      config.context_length > kMostTableElements / config.embedding_length) {
    reader.fail(ErrorCode::unsupported, "context_length",
                "a table of " + std::to_string(config.context_length) + " positions of " +
                    std::to_string(config.embedding_length) + " features is not built in");
  }
  return config;
}

std::unique_ptr<LoadedModel> load_xglm(ModelConfig config, Loader& load) {
  const int64_t width = config.embedding_length;
  AbsolutePositions made{
      load.made_matrix("sinusoids", sinusoids(kXglmOffset, config.context_length, width), width)};
  return load_ungated(std::move(config), load, std::move(made));
}

constexpr std::array kXglmKeys = {
    HfKey{"context_length", "max_position_embeddings", HfSize{&ModelConfig::context_length}},
    HfKey{"embedding_length", "d_model", HfSize{&ModelConfig::embedding_length}},
    HfKey{"block_count", "num_layers", HfSize{&ModelConfig::num_layers}},
    HfKey{"attention.head_count", "attention_heads", HfSize{&ModelConfig::num_heads}},
    HfKey{"feed_forward_length", "ffn_dim", HfSize{&ModelConfig::feed_forward_length}},
};

void read_hf_xglm(HfModel& model) {
  const HfConfig& config = model.config();
  model.add_names(kXglmNames);
  read_hf_keys(model, kXglmKeys);
  model.set_float("attention.layer_norm_epsilon", kXglmNormEps);
  copy_hf_activation(model, "activation_function", "gelu");
  model.expect_bool("add_cross_attention", false);
  const double width = static_cast<double>(config.integer("d_model").value_or(1));
  const bool scales = config.boolean("scale_embedding").value_or(true);
  model.set_float("embedding_scale", scales ? std::sqrt(width) : 1, "scale_embedding");
}

void write_hf_xglm(HfWriter& out) {
  const ModelConfig& config = out.config();
  out.set_text("model_type", "xglm");
  write_hf_keys(out, kXglmKeys);
  out.set_text("activation_function", hf_activation_name(config.activation));
  out.set_bool("scale_embedding", config.embedding_scale != 1.0F);
}

}  // namespace

extern const Architecture xglm_architecture{"xglm",       {"XGLMForCausalLM"}, RopeRows::halves,
                                            xglm_config,  load_xglm,           read_hf_xglm,
                                            write_hf_xglm};

}  // namespace headrace
