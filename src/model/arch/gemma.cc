// Gemma: Llama with a scaled embedding, GELU and norms stored as the difference from 1 (GGUF files
// have the 1 added). Sources: arXiv:2403.08295; transformers' GemmaConfig.
#include <cmath>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_gemma.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

ModelConfig gemma_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "gemma");
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding_length));
  return config;
}

std::unique_ptr<LoadedModel> load_gemma(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {.activation = Activation::gelu_tanh});
}

void read_hf_gemma(HfModel& model) {
  read_hf_gemma_decoder(model);
  read_hf_rope(model);
}

void write_hf_gemma(HfWriter& out) {
  write_hf_gemma_decoder(out, "gemma");
  write_hf_rope(out);
}

}  // namespace

extern const Architecture gemma_architecture{"gemma",       {"GemmaForCausalLM"}, RopeRows::halves,
                                             gemma_config,  load_gemma,           read_hf_gemma,
                                             write_hf_gemma};

}  // namespace headrace
