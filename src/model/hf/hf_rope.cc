// See hf_rope.h. Formulas: transformers' modeling_rope_utils (ROPE_INIT_FUNCTIONS).
#include "model/hf/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "model/blocks/positions.h"

namespace headrace {
namespace {

// The divisors of more pairs than a head can have.
constexpr int64_t kMaxPairs = 4096;

/// One kind of layer's parameters while they are read.
struct HfRope {
  HfModel& model;
  HfConfig parameters;
  std::string type;
  double theta = 0;
  int64_t dims = 0;
  int64_t context = 0;           ///< max_position_embeddings
  int64_t original_context = 0;  ///< before it was stretched

  double number(std::string_view key, double missing) const {
    return parameters.number(key).value_or(missing);
  }
  double required(std::string_view key) const {
    if (!parameters.has(key))
      parameters.fail(key, "the key is missing, which '" + type + "' needs");
    return parameters.number(key).value_or(1);
  }
};

/// Divisors of the frequencies: long wavelengths by the factor, short ones by nothing, those
/// between by a blend.
void set_llama3(const HfRope& rope) {
  const double factor = rope.required("factor");
  const double low = rope.required("low_freq_factor");
  const double high = rope.required("high_freq_factor");
  if (!(factor > 0 && high > low && low > 0)) {
    return rope.parameters.fail("high_freq_factor",
                                "expected factor > 0 and high_freq_factor > low_freq_factor > 0");
  }
  if (rope.dims / 2 > kMaxPairs) return;  // refused where the config is read
  const RopeConfig plain{.base = rope.theta, .dims = rope.dims};
  RopeConfig scaled = plain;
  scaled.scaling = RopeConfig::Scaling::llama3;
  scaled.factor = factor;
  scaled.low_freq_factor = low;
  scaled.high_freq_factor = high;
  scaled.original_context = rope.original_context;
  std::vector<float> divisors = rope_frequencies(plain, {});
  const std::vector<float> wanted = rope_frequencies(scaled, {});
  for (size_t i = 0; i < divisors.size(); ++i) divisors[i] /= wanted[i];
  rope.model.add_tensor("rope_freqs.weight", std::move(divisors));
}

/// The factor of the rotated features that the config asks for, or `missing`.
double attention_factor(const HfRope& rope, double missing) {
  return rope.number("attention_factor", missing);
}

double stretch_of(const HfRope& rope) {
  const double by_context =
      static_cast<double>(rope.context) / static_cast<double>(rope.original_context);
  return rope.number("factor", by_context);
}

void set_yarn(const HfRope& rope) {
  const double factor = stretch_of(rope);
  const auto scale = [&](double weight) {
    return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
  };
  const double weight = rope.number("mscale", 0);
  const double weight_all = rope.number("mscale_all_dim", 0);
  const double usual =
      weight != 0 && weight_all != 0 ? scale(weight) / scale(weight_all) : scale(1);
  HfModel& model = rope.model;
  model.set_text("rope.scaling.type", "yarn");
  model.set_float("rope.scaling.factor", factor, "rope_parameters.factor");
  model.set_int("rope.scaling.original_context_length", rope.original_context,
                "rope_parameters.original_max_position_embeddings");
  // GGUF's factor is one beside that of the stretch.
  model.set_float("rope.scaling.attn_factor",
                  attention_factor(rope, usual) / yarn_attention_factor(factor),
                  "rope_parameters.attention_factor");
  const auto or_missing = [&](std::string_view key, double missing) {
    const double value = rope.number(key, 0);
    return value == 0 ? missing : value;
  };
  model.set_float("rope.scaling.yarn_beta_fast", or_missing("beta_fast", 32),
                  "rope_parameters.beta_fast");
  model.set_float("rope.scaling.yarn_beta_slow", or_missing("beta_slow", 1),
                  "rope_parameters.beta_slow");
  model.set_bool("rope.scaling.yarn_truncate", rope.parameters.boolean("truncate").value_or(true),
                 "rope_parameters.truncate");
}

std::vector<float> longrope_divisors(const HfRope& rope, std::string_view key) {
  const std::vector<double> values = rope.parameters.numbers(key);
  if (static_cast<int64_t>(values.size()) != rope.dims / 2) {
    rope.parameters.fail(key, "expected " + std::to_string(rope.dims / 2) + " numbers, found " +
                                  std::to_string(values.size()));
  }
  return {values.begin(), values.end()};
}

void set_longrope(const HfRope& rope) {
  const double factor = stretch_of(rope);
  const double usual =
      factor <= 1
          ? 1.0
          : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(rope.original_context)));
  HfModel& model = rope.model;
  model.set_text("rope.scaling.type", "longrope");
  model.set_int("rope.scaling.original_context_length", rope.original_context,
                "rope_parameters.original_max_position_embeddings");
  model.set_float("rope.scaling.attn_factor", attention_factor(rope, usual),
                  "rope_parameters.attention_factor");
  model.add_tensor("rope_factors_short.weight", longrope_divisors(rope, "short_factor"));
  model.add_tensor("rope_factors_long.weight", longrope_divisors(rope, "long_factor"));
}

void set_factor(const HfRope& rope) {
  rope.model.set_text("rope.scaling.type", rope.type);
  rope.model.set_float("rope.scaling.factor", rope.required("factor"), "rope_parameters.factor");
}

void set_scaling(const HfRope& rope) {
  if (rope.type == "default") return;
  if (rope.type == "linear") return set_factor(rope);
  if (rope.type == "dynamic") {
    rope.model.set_int("rope.scaling.original_context_length", rope.context,
                       "max_position_embeddings");
    return set_factor(rope);
  }
  if (rope.type == "llama3") return set_llama3(rope);
  if (rope.type == "yarn") return set_yarn(rope);
  if (rope.type == "longrope" || rope.type == "su") return set_longrope(rope);
  rope.parameters.fail(
      "rope_type",
      "expected default, linear, dynamic, yarn, llama3 or longrope, found '" + rope.type + "'",
      ErrorCode::unsupported);
}

}  // namespace

HfConfig hf_rope_parameters(const HfConfig& config, std::string_view layer_type) {
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(key)) continue;
    const HfConfig parameters = config.object(key);
    return parameters.is_object(layer_type) ? parameters.object(layer_type) : parameters;
  }
  return config.object("rope_parameters");
}

void read_hf_rope(HfModel& model, const HfRopeDefaults& defaults, std::string_view layer_type) {
  const HfConfig& config = model.config();
  const HfConfig own = hf_rope_parameters(config, layer_type);
  HfRope rope{.model = model, .parameters = own, .type = {}};
  rope.type = own.has("rope_type") ? own.text("rope_type").value_or("")
                                   : own.text("type").value_or("default");
  rope.theta = own.has("rope_theta") ? rope.number("rope_theta", 0)
                                     : config.number("rope_theta").value_or(defaults.theta);
  double part = defaults.partial_factor;
  for (const std::string_view key : {"rotary_pct", "partial_rotary_factor"}) {
    part = config.number(key).value_or(part);
  }
  part = rope.number("partial_rotary_factor", part);
  rope.dims =
      static_cast<int64_t>(static_cast<double>(hf_head_dim(config)) * std::clamp(part, 0.0, 1.0));
  rope.context = std::max<int64_t>(1, config.integer("max_position_embeddings").value_or(1));
  const auto original = own.integer("original_max_position_embeddings");
  rope.original_context = std::max<int64_t>(
      1,
      config.integer("original_max_position_embeddings").value_or(original.value_or(rope.context)));
  if (!(rope.theta > 0) || rope.dims < 2 || rope.dims % 2 != 0 || rope.dims / 2 > kMaxPairs) {
    return own.fail("rope_theta",
                    "expected a base above 0 and an even number of rotated features, "
                    "found " +
                        std::to_string(rope.theta) + " and " + std::to_string(rope.dims));
  }
  model.set_int("rope.dimension_count", rope.dims, "head_dim");
  model.set_float("rope.freq_base", rope.theta, "rope_theta");
  set_scaling(rope);
}

}  // namespace headrace
