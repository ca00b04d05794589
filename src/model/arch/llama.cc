// Llama and models of its shape (SmolLM2, ...): pre-norm layers of rotary attention and a
// SiLU-gated MLP, or of experts (Mixtral, arXiv:2401.04088). Sources: arXiv:2302.13971,
// arXiv:2307.09288; transformers' LlamaConfig. GGUF files of many other models say "llama" too,
// Mistral's and Mixtral's among them.
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_rope.h"
#include "model/read_moe.h"

namespace headrace {
namespace {

ModelConfig llama_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "llama");
  read_moe(reader, {.normalise = true}, config);
  return config;
}

std::unique_ptr<LoadedModel> load_llama(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

void read_hf_llama(HfModel& model) {
  read_hf_decoder(model);
  expect_silu(model);
  read_hf_rope(model);
}

void write_hf_llama(HfWriter& out) {
  write_hf_decoder(out, "llama");
  out.set_bool("mlp_bias", out.has_tensor("blk.0.ffn_gate.bias"));
  write_hf_rope(out);
}

}  // namespace

extern const Architecture llama_architecture{
    "llama",    {"LlamaForCausalLM"}, RopeRows::interleaved, llama_config,
    load_llama, read_hf_llama,        write_hf_llama};

}  // namespace headrace
