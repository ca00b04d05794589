// Granite 3: Llama with multipliers on embedding, attention, residuals and logits. Sources: the
// Granite 3.0 technical report; transformers' GraniteConfig.
#include <array>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/pre_norm.h"
#include "model/hf/hf_keys.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

// Smaller ones are no multipliers.
constexpr double kLeastMultiplier = 0x1.0p-40;

ModelConfig granite_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "granite");
  const auto multiplier = [&](std::string_view name) {
    return static_cast<float>(reader.optional_float(name, kLeastMultiplier, 1));
  };
  config.embedding_scale = multiplier("embedding_scale");
  config.residual_scale = multiplier("residual_scale");
  config.logit_scale = 1.0F / multiplier("logit_scale");
  return config;
}

std::unique_ptr<LoadedModel> load_granite(ModelConfig config, Loader& load) {
  return load_pre_norm(std::move(config), load, {});
}

constexpr std::array kGraniteKeys = {
    HfKey{"embedding_scale", "embedding_multiplier", HfNumber{&ModelConfig::embedding_scale, 1}},
    HfKey{"residual_scale", "residual_multiplier", HfNumber{&ModelConfig::residual_scale, 1}},
    HfKey{"attention.scale", "attention_multiplier", HfNumber{&ModelConfig::attention_scale, 1}},
};

void read_hf_granite(HfModel& model) {
  read_hf_decoder(model);
  expect_silu(model);
  read_hf_keys(model, kGraniteKeys);
  model.copy_float("logit_scale", "logits_scaling", 1);
  read_hf_rope(model);
}

void write_hf_granite(HfWriter& out) {
  const ModelConfig& config = out.config();
  write_hf_decoder(out, "granite");
  write_hf_keys(out, kGraniteKeys);
  out.set_float("logits_scaling", 1 / static_cast<double>(config.logit_scale));
  write_hf_rope(out);
}

}  // namespace

extern const Architecture granite_architecture{
    "granite",    {"GraniteForCausalLM"}, RopeRows::interleaved, granite_config,
    load_granite, read_hf_granite,        write_hf_granite};

}  // namespace headrace
