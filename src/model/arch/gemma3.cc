// Gemma 3, text only: norms before and after each block, norms of queries and keys, five layers
// with a sliding window to one without, each kind with its own rotary base. Sources:
// arXiv:2503.19786, and query_pre_attn_scalar of the published configs. GGUF files store the norms'
// weights with the 1 already added.
#include <cmath>
#include <utility>

#include "model/architecture.h"
#include "model/decoders/sandwich.h"
#include "model/hf/hf_gemma.h"
#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr int64_t kGemma3LayersOf27B = 62;
constexpr int64_t kGemma3Period = 6;
constexpr int64_t kGemma3Window = 4096;
constexpr double kGemma3Theta = 1'000'000;
constexpr double kGemma3LocalTheta = 10'000;

ModelConfig gemma3_config(ConfigReader& reader) {
  ModelConfig config = read_decoder_config(reader, "gemma3");
  config.embedding_scale = std::sqrt(static_cast<float>(config.embedding_length));
  config.attention_soft_cap =
      static_cast<float>(reader.optional_float("attn_logit_softcapping", 0, 0));
  config.final_soft_cap =
      static_cast<float>(reader.optional_float("final_logit_softcapping", 0, 0));

  // Files do not say how queries are scaled. The 27B model (62 layers) scales by its width for each
  // head, 168, and not by the head's size.
  if (config.num_layers == kGemma3LayersOf27B &&
      reader.optional_float("attention.scale", 0, 0) == 0) {
    config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.embedding_length) /
                                              static_cast<float>(config.num_heads));
  }
  // Every sixth layer sees everything; a file may say otherwise by a period or layer by layer.
  read_window_layers(reader, config, kGemma3Period);

  // Window layers keep the short context they were trained with: own base, no scaling.
  config.rope_window =
      RopeConfig{.base = reader.optional_float("rope.freq_base_swa", 1, kGemma3LocalTheta),
                 .dims = config.rope.dims};
  return config;
}

std::unique_ptr<LoadedModel> load_gemma3(ModelConfig config, Loader& load) {
  return load_sandwich(std::move(config), load, {.has_head_norms = true});
}

bool is_gemma3_window(const HfConfig& config, int64_t layer) {
  const int64_t period = config.integer("sliding_window_pattern").value_or(kGemma3Period);
  return period < 1 || (layer + 1) % period != 0;
}

void read_hf_gemma3(HfModel& model) {
  read_hf_gemma_sandwich(model);
  const HfConfig& config = model.config();
  const int64_t missing = config.names("sliding_window") ? 0 : kGemma3Window;
  set_hf_windows(model, config.integer("sliding_window").value_or(missing), is_gemma3_window);
  read_hf_rope(model, {.theta = kGemma3Theta});

  const HfConfig parameters = config.object("rope_parameters");
  double base = config.number("rope_local_base_freq").value_or(kGemma3LocalTheta);
  if (parameters.is_object("sliding_attention")) {
    const HfConfig local = parameters.object("sliding_attention");
    base = local.number("rope_theta").value_or(base);
    if (const auto type = local.text("rope_type"); type && *type != "default") {
      local.fail("rope_type", "expected 'default' for layers with a window, found '" + *type + "'",
                 ErrorCode::unsupported);
    }
  }
  model.set_float("rope.freq_base_swa", base, "rope_local_base_freq");
}

void write_hf_gemma3(HfWriter& out) {
  write_hf_gemma_sandwich(out, "gemma3_text");
  write_hf_rope(out);
  if (const auto& rope = out.config().rope_window)
    out.set_float("rope_local_base_freq", rope->base);
}

}  // namespace

extern const Architecture gemma3_architecture{
    "gemma3",         {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
    RopeRows::halves, gemma3_config,
    load_gemma3,      read_hf_gemma3,
    write_hf_gemma3};

}  // namespace headrace
