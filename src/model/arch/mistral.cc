// Mistral: Llama with a sliding window in all layers. Sources: arXiv:2310.06825; transformers'
// MistralConfig. In GGUF it is a "llama".
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr int64_t kWindowOfOldConfigs = 4096;

ModelConfig mistral_config(ConfigReader& reader) {
  return read_decoder_config(reader, "llama");
}

std::unique_ptr<LoadedModel> load_mistral(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

void read_hf_mistral(HfModel& model) {
  read_hf_decoder(model);
  expect_silu(model);
  const HfConfig& config = model.config();
  const int64_t missing = config.names("sliding_window") ? 0 : kWindowOfOldConfigs;
  const int64_t window = config.integer("sliding_window").value_or(missing);
  if (window > 0) model.set_int("attention.sliding_window", window, "sliding_window");
  read_hf_rope(model);
}

void write_hf_mistral(HfWriter& out) {
  write_hf_decoder(out, "mistral");
  write_hf_window(out);
  write_hf_rope(out);
}

}  // namespace

extern const Architecture mistral_architecture{
    "llama",      {"MistralForCausalLM"}, RopeRows::interleaved, mistral_config,
    load_mistral, read_hf_mistral,        write_hf_mistral};

}  // namespace headrace
