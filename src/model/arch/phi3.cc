// Phi-3, 3.5 and 4: Llama with fused projections, part of each head rotated in the newest, longrope
// for long contexts. Sources: arXiv:2404.14219; transformers' Phi3Config.
#include <array>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr std::array kFusedNames = {
    HfName{"model.layers.#.self_attn.qkv_proj", "blk.#.attn_qkv"},
    HfName{"model.layers.#.mlp.gate_up_proj", "blk.#.ffn_up"},
};

ModelConfig phi3_config(ConfigReader& reader) {
  return read_decoder_config(reader, "phi3");
}

std::unique_ptr<LoadedModel> load_phi3(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {.is_gate_fused = true});
}

void read_hf_phi3(HfModel& model) {
  read_hf_decoder(model);
  model.add_names(kFusedNames);
  expect_silu(model);
  const HfConfig& config = model.config();
  // A window as long as the context hides nothing.
  const int64_t window = config.integer("sliding_window").value_or(0);
  if (window > 0 && window < config.integer("max_position_embeddings").value_or(0)) {
    model.set_int("attention.sliding_window", window, "sliding_window");
  }
  read_hf_rope(model);
}

void write_hf_phi3(HfWriter& out) {
  write_hf_decoder(out, "phi3");
  write_hf_window(out);
  write_hf_rope(out);
}

}  // namespace

extern const Architecture phi3_architecture{"phi3",       {"Phi3ForCausalLM"}, RopeRows::halves,
                                            phi3_config,  load_phi3,           read_hf_phi3,
                                            write_hf_phi3};

}  // namespace headrace
