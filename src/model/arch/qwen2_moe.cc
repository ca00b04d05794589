// Qwen 1.5 and 2 with experts: Qwen2 with a shared expert beside those that the router chooses.
// Sources: arXiv:2407.10671; transformers' Qwen2MoeConfig.
#include <array>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_moe.h"
#include "model/hf/hf_qwen.h"
#include "model/hf/hf_rope.h"
#include "model/read_moe.h"

namespace headrace {
namespace {

constexpr int64_t kQwen2MoeWindowLayers = 28;
constexpr int64_t kQwen2MoeWindow = 4096;

constexpr std::array kQwen2MoeNames = {
    HfName{"model.layers.#.mlp.shared_expert.gate_proj", "blk.#.ffn_gate_shexp"},
    HfName{"model.layers.#.mlp.shared_expert.up_proj", "blk.#.ffn_up_shexp"},
    HfName{"model.layers.#.mlp.shared_expert.down_proj", "blk.#.ffn_down_shexp"},
    HfName{"model.layers.#.mlp.shared_expert_gate", "blk.#.ffn_gate_inp_shexp"},
};

ModelConfig qwen2_moe_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "qwen2moe");
  if (config.window > 0) read_window_layers(reader, config, 0);
  read_moe(reader, {.normalise = false}, config);
  return config;
}

std::unique_ptr<LoadedModel> load_qwen2_moe(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

// Every other layer of the first ones, as the config class has it.
bool is_qwen2_moe_window(const HfConfig& config, int64_t layer) {
  return layer % 2 == 0 &&
         layer < config.integer("max_window_layers").value_or(kQwen2MoeWindowLayers);
}

void read_hf_qwen2_moe(HfModel& model) {
  read_hf_decoder(model);
  model.add_names(kQwen2MoeNames);
  expect_silu(model);
  read_hf_moe(model, false);
  model.copy_int("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
  const HfConfig& config = model.config();
  if (config.boolean("use_sliding_window").value_or(false)) {
    const int64_t missing = config.names("sliding_window") ? 0 : kQwen2MoeWindow;
    set_hf_windows(model, config.integer("sliding_window").value_or(missing), is_qwen2_moe_window);
  }
  read_hf_rope(model);
}

void write_hf_qwen2_moe(HfWriter& out) {
  write_hf_qwen(out, "qwen2_moe");
  write_hf_moe(out, "num_experts");
  if (out.config().moe) {
    out.set_int("shared_expert_intermediate_size", out.config().moe->shared_length);
  }
}

}  // namespace

extern const Architecture qwen2_moe_architecture{
    "qwen2moe",     {"Qwen2MoeForCausalLM"}, RopeRows::halves,  qwen2_moe_config,
    load_qwen2_moe, read_hf_qwen2_moe,       write_hf_qwen2_moe};

}  // namespace headrace
