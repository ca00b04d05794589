// Gemma 2: norms before and after each block, soft caps, every other layer with a sliding window.
// Sources: arXiv:2408.00118; transformers' Gemma2Config. GGUF files store the norms' weights with
// the 1 already added.
#include <cmath>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/sandwich.h"
#include "model/hf/hf_gemma.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr int64_t kGemma2Period = 2;
constexpr int64_t kGemma2LayersOf27B = 46;
constexpr int64_t kGemma2Window = 4096;
constexpr double kGemma2AttentionCap = 50;
constexpr double kGemma2FinalCap = 30;

ModelConfig gemma2_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "gemma2");
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding_length));
  const auto cap = [&](std::string_view name, double missing) {
    return static_cast<float>(reader.optional_float(name, 0, missing));
  };
  config.attention_soft_cap = cap("attn_logit_softcapping", kGemma2AttentionCap);
  config.final_soft_cap = cap("final_logit_softcapping", kGemma2FinalCap);
  // Files do not say how queries are scaled: by the head's size, but in the 27B model by the width
  // for each head.
  if (config.num_layers == kGemma2LayersOf27B &&
      reader.optional_float("attention.scale", 0, 0) == 0) {
    config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.embedding_length) /
                                              static_cast<float>(config.num_heads));
  }
  read_window_layers(reader, config, kGemma2Period);
  return config;
}

std::unique_ptr<LoadedModel> load_gemma2(ModelConfig config, Loader& load) {
  return load_sandwich(std::move(config), load, {});
}

bool is_gemma2_window(const HfConfig&, int64_t layer) {
  return (layer + 1) % kGemma2Period != 0;
}

void read_hf_gemma2(HfModel& model) {
  read_hf_gemma_sandwich(model);
  const HfConfig& config = model.config();
  // Null means none; GGUF's default is the released models' cap.
  for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (config.names(key) && !config.has(key)) model.set_float(key, 0, key);
  }
  const int64_t missing = config.names("sliding_window") ? 0 : kGemma2Window;
  set_hf_windows(model, config.integer("sliding_window").value_or(missing), is_gemma2_window);
  read_hf_rope(model);
}

void write_hf_gemma2(HfWriter& out) {
  write_hf_gemma_sandwich(out, "gemma2");
  write_hf_rope(out);
}

}  // namespace

extern const Architecture gemma2_architecture{
    "gemma2",    {"Gemma2ForCausalLM"}, RopeRows::halves, gemma2_config,
    load_gemma2, read_hf_gemma2,        write_hf_gemma2};

}  // namespace headrace
