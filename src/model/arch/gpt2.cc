// GPT-2: learned positions, layer norms, a plain feed-forward block, biases everywhere. Sources:
// "Language Models are Unsupervised Multitask Learners" (2019); transformers' GPT2Config. Hugging
// Face files keep projections as [in, out].
#include <array>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/ungated.h"
#include "model/hf/hf_activation.h"
#include "model/hf/hf_keys.h"

namespace headrace {
namespace {

constexpr std::array kGpt2Names = {
    HfName{"transformer.wte", "token_embd"},
    HfName{"transformer.wpe", "position_embd"},
    HfName{"transformer.ln_f", "output_norm"},
    HfName{"lm_head", "output"},
    HfName{"transformer.h.#.ln_1", "blk.#.attn_norm"},
    HfName{"transformer.h.#.attn.c_attn", "blk.#.attn_qkv", HfChange::transpose},
    HfName{"transformer.h.#.attn.c_proj", "blk.#.attn_output", HfChange::transpose},
    HfName{"transformer.h.#.ln_2", "blk.#.ffn_norm"},
    HfName{"transformer.h.#.mlp.c_fc", "blk.#.ffn_up", HfChange::transpose},
    HfName{"transformer.h.#.mlp.c_proj", "blk.#.ffn_down", HfChange::transpose},
    // Masks that older checkpoints hold.
    HfName{"transformer.h.#.attn", "", HfChange::skip},
    HfName{"transformer.h.#.attn.masked_bias", "", HfChange::skip},
};

ModelConfig gpt2_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "gpt2", NormKind::layer, PositionKind::absolute);
  config.activation = read_activation(reader, Activation::gelu_tanh);
  return config;
}

std::unique_ptr<LoadedModel> load_gpt2(ModelConfig config, Loader& load) {
  AbsolutePositions learned{
      load.matrix("position_embd", config.context_length, config.embedding_length)};
  return load_ungated(std::move(config), load, std::move(learned));
}

constexpr std::array kGpt2Keys = {
    HfKey{"context_length", "n_positions", HfSize{&ModelConfig::context_length}},
    HfKey{"embedding_length", "n_embd", HfSize{&ModelConfig::embedding_length}},
    HfKey{"block_count", "n_layer", HfSize{&ModelConfig::num_layers}},
    HfKey{"attention.head_count", "n_head", HfSize{&ModelConfig::num_heads}},
    HfKey{"attention.layer_norm_epsilon", "layer_norm_epsilon",
          HfNumber{&ModelConfig::norm_eps, 1e-5}},
};

void read_hf_gpt2(HfModel& model) {
  const HfConfig& config = model.config();
  model.add_names(kGpt2Names);
  read_hf_keys(model, kGpt2Keys);
  model.copy_int("feed_forward_length", "n_inner", 4 * config.integer("n_embd").value_or(0));
  if (config.has("vocab_size")) model.copy_int("vocab_size", "vocab_size");
  copy_hf_activation(model, "activation_function", "gelu_new");
  model.expect_bool("scale_attn_by_inverse_layer_idx", false);
  model.expect_bool("add_cross_attention", false);
  if (!config.boolean("scale_attn_weights").value_or(true)) {
    model.set_float("attention.scale", 1, "scale_attn_weights");
  }
}

void write_hf_gpt2(HfWriter& out) {
  const ModelConfig& config = out.config();
  out.set_text("model_type", "gpt2");
  write_hf_keys(out, kGpt2Keys);
  out.set_int("n_inner", config.feed_forward_length);
  out.set_text("activation_function", hf_activation_name(config.activation));
  out.set_bool("scale_attn_weights", config.attention_scale != 1.0F);
}

}  // namespace

extern const Architecture gpt2_architecture{"gpt2",       {"GPT2LMHeadModel"}, RopeRows::halves,
                                            gpt2_config,  load_gpt2,           read_hf_gpt2,
                                            write_hf_gpt2};

}  // namespace headrace
