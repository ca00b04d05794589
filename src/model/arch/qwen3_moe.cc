// Qwen3 with experts. Sources: arXiv:2505.09388; transformers' Qwen3MoeConfig.
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_moe.h"
#include "model/hf/hf_qwen.h"
#include "model/hf/hf_rope.h"
#include "model/read_moe.h"

namespace headrace {
namespace {

ModelConfig qwen3_moe_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "qwen3moe");
  // GGUF files do not say it; the published models all do.
  read_moe(reader, {.normalise = true}, config);
  return config;
}

std::unique_ptr<LoadedModel> load_qwen3_moe(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {.has_head_norms = true});
}

void read_hf_qwen3_moe(HfModel& model) {
  read_hf_decoder(model);
  expect_silu(model);
  read_hf_moe(model, false);
  const HfConfig& config = model.config();
  const int64_t window = config.integer("sliding_window").value_or(0);
  if (window > 0 && config.boolean("use_sliding_window").value_or(false)) {
    model.set_int("attention.sliding_window", window, "sliding_window");
  }
  read_hf_rope(model);
}

void write_hf_qwen3_moe(HfWriter& out) {
  write_hf_qwen(out, "qwen3_moe");
  write_hf_moe(out, "num_experts");
}

}  // namespace

extern const Architecture qwen3_moe_architecture{
    "qwen3moe",     {"Qwen3MoeForCausalLM"}, RopeRows::halves,  qwen3_moe_config,
    load_qwen3_moe, read_hf_qwen3_moe,       write_hf_qwen3_moe};

}  // namespace headrace
