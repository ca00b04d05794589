// OLMoE: experts, queries and keys normed over all heads together and perhaps clamped. Sources:
// arXiv:2409.02060; transformers' OlmoeConfig.
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_moe.h"
#include "model/hf/hf_rope.h"
#include "model/read_moe.h"

namespace headrace {
namespace {

ModelConfig olmoe_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "olmoe");
  read_moe(reader, {.normalise = false}, config);
  config.qkv_limit = static_cast<float>(reader.optional_float("attention.clamp_kqv", 0, 0));
  return config;
}

std::unique_ptr<LoadedModel> load_olmoe(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {.has_row_norms = true});
}

void read_hf_olmoe(HfModel& model) {
  read_hf_decoder(model);
  expect_silu(model);
  read_hf_moe(model, false);
  if (model.config().has("clip_qkv")) model.copy_float("attention.clamp_kqv", "clip_qkv");
  read_hf_rope(model);
}

void write_hf_olmoe(HfWriter& out) {
  const ModelConfig& config = out.config();
  write_hf_decoder(out, "olmoe");
  write_hf_rope(out);
  if (config.qkv_limit > 0) out.set_float("clip_qkv", static_cast<double>(config.qkv_limit));
  if (!config.moe) return;
  out.set_int("intermediate_size", config.moe->expert_length);
  out.set_int("num_experts", config.moe->num_experts);
  out.set_int("num_experts_per_tok", config.moe->num_active);
  out.set_bool("norm_topk_prob", config.moe->normalise);
}

}  // namespace

extern const Architecture olmoe_architecture{"olmoe",       {"OlmoeForCausalLM"}, RopeRows::halves,
                                             olmoe_config,  load_olmoe,           read_hf_olmoe,
                                             write_hf_olmoe};

}  // namespace headrace
