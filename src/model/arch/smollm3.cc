// SmolLM3: Llama, some of whose layers do not rotate queries and keys (NoPE, arXiv:2501.18795).
// Sources: the SmolLM3 release notes; transformers' SmolLM3Config. GGUF files do not say which:
// every fourth layer, unless "rope.layers" (this project's own key) has a flag for each layer.
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr int64_t kUsualInterval = 4;
constexpr double kSmolLm3Theta = 2'000'000;

ModelConfig smollm3_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "smollm3");
  if (config.window > 0) read_window_layers(reader, config, 0);
  config.has_positions = reader.layer_flags("rope.layers", config.num_layers);
  if (!config.has_positions.empty()) return config;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    config.has_positions.push_back((i + 1) % kUsualInterval != 0);
  }
  return config;
}

std::unique_ptr<LoadedModel> load_smollm3(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

bool rotates(const HfConfig& config, int64_t layer) {
  const std::vector<int64_t> flags = config.integers("no_rope_layers");
  if (layer < static_cast<int64_t>(flags.size())) return flags[static_cast<size_t>(layer)] != 0;
  const int64_t interval = config.integer("no_rope_layer_interval").value_or(kUsualInterval);
  return interval < 1 || (layer + 1) % interval != 0;
}

bool is_smollm3_window(const HfConfig& config, int64_t layer) {
  return !rotates(config, layer);
}

void read_hf_smollm3(HfModel& model) {
  constexpr int64_t kMostLayers = 4096;
  read_hf_decoder(model);
  expect_silu(model);
  const HfConfig& config = model.config();
  const int64_t layers = config.integer("num_hidden_layers").value_or(0);
  const std::vector<int64_t> given = config.integers("no_rope_layers");
  if (!given.empty() && static_cast<int64_t>(given.size()) != layers) {
    return config.fail("no_rope_layers", layer_count_fault(layers, given.size()));
  }
  std::vector<int64_t> flags;
  for (int64_t i = 0; i < layers && i < kMostLayers; ++i) {
    flags.push_back(rotates(config, i) ? 1 : 0);
  }
  if (!flags.empty()) model.set_ints("rope.layers", std::move(flags), "no_rope_layers");
  if (config.boolean("use_sliding_window").value_or(false)) {
    set_hf_windows(model, config.integer("sliding_window").value_or(0), is_smollm3_window);
  }
  read_hf_rope(model, {.theta = kSmolLm3Theta});
}

void write_hf_smollm3(HfWriter& out) {
  const ModelConfig& config = out.config();
  write_hf_decoder(out, "smollm3");
  const std::vector<int64_t> flags(config.has_positions.begin(), config.has_positions.end());
  if (!flags.empty()) out.set_ints("no_rope_layers", flags);
  out.set_bool("use_sliding_window", config.window > 0);
  write_hf_layer_types(out);
  write_hf_rope(out);
}

}  // namespace

extern const Architecture smollm3_architecture{
    "smollm3",    {"SmolLM3ForCausalLM"}, RopeRows::interleaved, smollm3_config,
    load_smollm3, read_hf_smollm3,        write_hf_smollm3};

}  // namespace headrace
