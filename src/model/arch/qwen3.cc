// Qwen3: Llama with norms of queries and keys. Sources: arXiv:2505.09388; transformers'
// Qwen3Config.
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_qwen.h"

namespace headrace {
namespace {

ModelConfig qwen3_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "qwen3");
  if (config.window > 0) read_window_layers(reader, config, 0);
  return config;
}

std::unique_ptr<LoadedModel> load_qwen3(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {.has_head_norms = true});
}

void write_hf_qwen3(HfWriter& out) {
  write_hf_qwen(out, "qwen3");
}

}  // namespace

extern const Architecture qwen3_architecture{"qwen3",       {"Qwen3ForCausalLM"}, RopeRows::halves,
                                             qwen3_config,  load_qwen3,           read_hf_qwen,
                                             write_hf_qwen3};

}  // namespace headrace
