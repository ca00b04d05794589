// Mixtral: Mistral with experts. Sources: arXiv:2401.04088; transformers' MixtralConfig. In GGUF it
// is a "llama".
#include <array>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_moe.h"
#include "model/hf/hf_rope.h"
#include "model/read_moe.h"

namespace headrace {
namespace {

constexpr double kMixtralTheta = 1'000'000;

constexpr std::array kMixtralNames = {
    HfName{"model.layers.#.block_sparse_moe.gate", "blk.#.ffn_gate_inp"},
    HfName{"model.layers.#.block_sparse_moe.experts.#.w1", "blk.#.ffn_gate.#"},
    HfName{"model.layers.#.block_sparse_moe.experts.#.w2", "blk.#.ffn_down.#"},
    HfName{"model.layers.#.block_sparse_moe.experts.#.w3", "blk.#.ffn_up.#"},
};

ModelConfig mixtral_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "llama");
  read_moe(reader, {.normalise = true}, config);
  return config;
}

std::unique_ptr<LoadedModel> load_mixtral(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

void read_hf_mixtral(HfModel& model) {
  read_hf_decoder(model);
  model.add_names(kMixtralNames);
  expect_silu(model);
  read_hf_moe(model, true);
  const int64_t window = model.config().integer("sliding_window").value_or(0);
  if (window > 0) model.set_int("attention.sliding_window", window, "sliding_window");
  read_hf_rope(model, {.theta = kMixtralTheta});
}

void write_hf_mixtral(HfWriter& out) {
  write_hf_decoder(out, "mixtral");
  write_hf_window(out);
  write_hf_rope(out);
  if (!out.config().moe) return;
  out.set_int("intermediate_size", out.config().moe->expert_length);
  out.set_int("num_local_experts", out.config().moe->num_experts);
  out.set_int("num_experts_per_tok", out.config().moe->num_active);
}

}  // namespace

extern const Architecture mixtral_architecture{
    "llama",      {"MixtralForCausalLM"}, RopeRows::interleaved, mixtral_config,
    load_mixtral, read_hf_mixtral,        write_hf_mixtral};

}  // namespace headrace
