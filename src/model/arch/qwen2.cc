// Qwen2 and 2.5: Llama with biases on queries, keys and values. Sources: arXiv:2407.10671;
// transformers' Qwen2Config.
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_qwen.h"

namespace headrace {
namespace {

ModelConfig qwen2_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "qwen2");
  if (config.window > 0) read_window_layers(reader, config, 0);
  return config;
}

std::unique_ptr<LoadedModel> load_qwen2(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

void write_hf_qwen2(HfWriter& out) {
  write_hf_qwen(out, "qwen2");
}

}  // namespace

extern const Architecture qwen2_architecture{"qwen2",       {"Qwen2ForCausalLM"}, RopeRows::halves,
                                             qwen2_config,  load_qwen2,           read_hf_qwen,
                                             write_hf_qwen2};

}  // namespace headrace
