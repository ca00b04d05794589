// See hf_gemma.h. Source: transformers' GemmaConfig, Gemma2Config, Gemma3TextConfig.
#include "model/hf/hf_gemma.h"

#include <array>
#include <cmath>
#include <string_view>

namespace headrace {
namespace {

constexpr int64_t kGemmaHeadDim = 256;
constexpr double kGemmaQueryScalar = 256;

constexpr std::array kSandwichNames = {
    HfName{"model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm",
           HfChange::add_one},
    HfName{"model.layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm", HfChange::add_one},
    HfName{"model.layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm", HfChange::add_one},
};

}  // namespace

void read_hf_gemma_decoder(HfModel& model) {
  // "gelu" of the oldest configs meant the same.
  constexpr std::array<std::string_view, 3> kActivations = {"gelu_pytorch_tanh", "gelu_new",
                                                            "gelu"};
  read_hf_decoder(model);
  add_one_to_norms(model);
  model.expect_text("hidden_activation", kActivations);
  if (!model.config().has("hidden_activation")) model.expect_text("hidden_act", kActivations);
  model.expect_bool("use_bidirectional_attention", false);
  if (model.config().has("head_dim")) return;
  model.set_int("attention.key_length", kGemmaHeadDim, "head_dim");
  model.set_int("attention.value_length", kGemmaHeadDim, "head_dim");
}

void read_hf_gemma_sandwich(HfModel& model) {
  read_hf_gemma_decoder(model);
  model.add_names(kSandwichNames);
  const HfConfig& config = model.config();
  for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (config.has(key)) model.copy_float(key, key);
  }
  const double scalar = config.number("query_pre_attn_scalar").value_or(kGemmaQueryScalar);
  if (scalar <= 0) return config.fail("query_pre_attn_scalar", "expected a number above 0");
  model.set_float("attention.scale", 1 / std::sqrt(scalar), "query_pre_attn_scalar");
}

void write_hf_gemma_decoder(HfWriter& out, std::string_view model_type) {
  write_hf_decoder(out, model_type);
  out.set_text("hidden_act", "gelu_pytorch_tanh");
  out.set_text("hidden_activation", "gelu_pytorch_tanh");
}

void write_hf_gemma_sandwich(HfWriter& out, std::string_view model_type) {
  const ModelConfig& config = out.config();
  write_hf_gemma_decoder(out, model_type);
  const auto set_cap = [&](std::string_view key, float cap) {
    if (cap > 0) return out.set_float(key, static_cast<double>(cap));
    out.set_null(key);
  };
  set_cap("attn_logit_softcapping", config.attention_soft_cap);
  set_cap("final_logit_softcapping", config.final_soft_cap);
  const auto scale = static_cast<double>(config.attention_scale);
  const double scalar = 1 / (scale * scale);
  if (const double whole = std::round(scalar); std::abs(scalar - whole) < 1e-3) {
    out.set_int("query_pre_attn_scalar", static_cast<int64_t>(whole));
  } else {
    out.set_float("query_pre_attn_scalar", scalar);
  }
  write_hf_layer_types(out);
}

}  // namespace headrace
