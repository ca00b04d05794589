// See hf_writer.h.
#include "model/hf/hf_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>

#include "model/hf/hf_keys.h"

namespace headrace {
namespace {

using nlohmann::ordered_json;

/// The number of 64 bits whose text is the shortest that gives the same number of 32.
double shortest(double value) {
  const auto narrow = static_cast<float>(value);
  char text[32];
  const auto written = std::to_chars(text, text + sizeof text, narrow);
  double out = value;
  if (written.ec == std::errc()) std::from_chars(text, written.ptr, out);
  return out;
}

/// Llama 3's parameters by the divisors that it gives, of frequencies theta^(-2 i / dims).
struct Llama3Scaling {
  double factor = 1;
  double high_freq_factor = 4;
  int64_t original_context = 8192;
};

/// Between the long waves, which the factor divides, and the short ones, which stay, the share that
/// stays is (original / wavelength - low) / (high - low), a line over the frequencies: two points
/// give it, and one with the usual high factor. The low factor is taken as 1, since the others can
/// be scaled by it.
Llama3Scaling fit_llama3(std::span<const float> divisors, const RopeConfig& rope) {
  Llama3Scaling out;
  out.factor = shortest(*std::ranges::max_element(divisors));
  std::vector<std::pair<double, double>> points;  // turns a position, share that stays
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double share =
        (1 / static_cast<double>(divisors[i]) - 1 / out.factor) / (1 - 1 / out.factor);
    const double exponent = -2 * static_cast<double>(i) / static_cast<double>(rope.dims);
    if (share > 1e-4 && share < 1 - 1e-4) {
      points.emplace_back(std::pow(rope.base, exponent) / (2 * std::numbers::pi), share);
    }
  }
  if (points.empty()) return out;
  const auto& [fast, most] = points.front();
  if (points.size() == 1) {
    out.original_context = std::llround((most * (out.high_freq_factor - 1) + 1) / fast);
    return out;
  }
  const auto& [slow, least] = points.back();
  const double slope = (most - least) / (fast - slow);
  const double offset = slope * slow - least;  // low / (high - low)
  if (!(slope > 0 && offset > 1e-6)) return out;
  out.high_freq_factor = shortest(std::round((1 + 1 / offset) * 1000) / 1000);
  out.original_context = std::llround(slope * (out.high_freq_factor - 1));
  return out;
}

void write_llama3(HfWriter& out, std::span<const float> divisors) {
  const Llama3Scaling scaling = fit_llama3(divisors, out.config().rope);
  out.set_text("rope_scaling.rope_type", "llama3");
  out.set_float("rope_scaling.factor", scaling.factor);
  out.set_float("rope_scaling.low_freq_factor", 1);
  out.set_float("rope_scaling.high_freq_factor", scaling.high_freq_factor);
  out.set_int("rope_scaling.original_max_position_embeddings", scaling.original_context);
}

void write_scaling(HfWriter& out) {
  const RopeConfig& rope = out.config().rope;
  switch (rope.scaling) {
    case RopeConfig::Scaling::none:
    case RopeConfig::Scaling::llama3: {
      const std::vector<float> divisors = out.floats("rope_freqs.weight");
      if (!divisors.empty() && rope.dims > 0) write_llama3(out, divisors);
      return;
    }
    case RopeConfig::Scaling::linear:
    case RopeConfig::Scaling::dynamic:
      out.set_text("rope_scaling.rope_type",
                   rope.scaling == RopeConfig::Scaling::linear ? "linear" : "dynamic");
      out.set_float("rope_scaling.factor", rope.factor);
      return;
    case RopeConfig::Scaling::yarn:
      out.set_text("rope_scaling.rope_type", "yarn");
      out.set_float("rope_scaling.factor", rope.factor);
      out.set_int("rope_scaling.original_max_position_embeddings", rope.original_context);
      out.set_float("rope_scaling.attention_factor", rope.attention_factor);
      out.set_float("rope_scaling.beta_fast", rope.beta_fast);
      out.set_float("rope_scaling.beta_slow", rope.beta_slow);
      if (!rope.truncates) out.set_bool("rope_scaling.truncate", false);
      return;
    case RopeConfig::Scaling::longrope:
      out.set_int("original_max_position_embeddings", rope.original_context);
      out.set_text("rope_scaling.rope_type", "longrope");
      out.set_text("rope_scaling.type", "longrope");
      out.set_float("rope_scaling.attention_factor", rope.attention_factor);
      out.set_floats("rope_scaling.short_factor", out.floats("rope_factors_short.weight"));
      out.set_floats("rope_scaling.long_factor", out.floats("rope_factors_long.weight"));
      return;
  }
}

}  // namespace

HfWriter::HfWriter(const ModelConfig& config, const Checkpoint& checkpoint)
    : config_(config),
      checkpoint_(checkpoint),
      json_(std::make_unique<ordered_json>(ordered_json::object())) {}

HfWriter::~HfWriter() = default;

bool HfWriter::has_tensor(std::string_view name) const {
  return checkpoint_.find(name) != nullptr;
}

std::vector<float> HfWriter::floats(std::string_view name) const {
  const CheckpointTensor* tensor = checkpoint_.find(name);
  if (tensor == nullptr || tensor->format != Format::f32 || tensor->shape.size() != 1) return {};
  const auto bytes = checkpoint_.read(*tensor);
  if (!bytes.ok()) return {};
  std::vector<float> out(static_cast<size_t>(tensor->num_elements()));
  format_traits(Format::f32).decode(bytes->data(), out.data(), out.size());
  return out;
}

ordered_json& HfWriter::at(std::string_view key) {
  const size_t dot = key.find('.');
  if (dot == key.npos) return (*json_)[std::string(key)];
  return (*json_)[std::string(key.substr(0, dot))][std::string(key.substr(dot + 1))];
}

void HfWriter::set_int(std::string_view key, int64_t value) {
  at(key) = value;
}
void HfWriter::set_float(std::string_view key, double value) {
  at(key) = shortest(value);
}
void HfWriter::set_floats(std::string_view key, std::span<const float> values) {
  ordered_json& list = at(key) = ordered_json::array();
  for (const float value : values) list.push_back(shortest(static_cast<double>(value)));
}
void HfWriter::set_ints(std::string_view key, std::span<const int64_t> values) {
  at(key) = std::vector<int64_t>(values.begin(), values.end());
}
void HfWriter::set_bool(std::string_view key, bool value) {
  at(key) = value;
}
void HfWriter::set_text(std::string_view key, std::string_view value) {
  at(key) = std::string(value);
}
void HfWriter::set_texts(std::string_view key, std::span<const std::string> values) {
  at(key) = std::vector<std::string>(values.begin(), values.end());
}
void HfWriter::set_null(std::string_view key) {
  at(key) = nullptr;
}

std::string HfWriter::text() const {
  return json_->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void write_hf_decoder(HfWriter& out, std::string_view model_type) {
  const ModelConfig& config = out.config();
  out.set_text("model_type", model_type);
  write_hf_keys(out, hf_decoder_keys());
  out.set_int("num_key_value_heads", config.num_kv_heads);
  out.set_int("head_dim", config.head_dim);
  out.set_text("hidden_act", "silu");
  out.set_bool("attention_bias", out.has_tensor("blk.0.attn_q.bias"));
}

void write_hf_rope(HfWriter& out) {
  const ModelConfig& config = out.config();
  out.set_float("rope_theta", config.rope.base);
  if (config.rope.dims != config.head_dim) {
    out.set_float("partial_rotary_factor",
                  static_cast<double>(config.rope.dims) / static_cast<double>(config.head_dim));
  }
  write_scaling(out);
}

void write_hf_window(HfWriter& out) {
  if (out.config().window > 0) {
    out.set_int("sliding_window", out.config().window);
  } else {
    out.set_null("sliding_window");
  }
}

void write_hf_layer_types(HfWriter& out) {
  write_hf_window(out);
  if (out.config().window == 0) return;
  std::vector<std::string> types;
  for (const bool slides : out.config().is_window_layer) {
    types.emplace_back(slides ? "sliding_attention" : "full_attention");
  }
  out.set_texts("layer_types", types);
}

void write_hf_moe(HfWriter& out, std::string_view count) {
  const ModelConfig& config = out.config();
  if (!config.moe) return;
  out.set_int(count, config.moe->num_experts);
  out.set_int("num_experts_per_tok", config.moe->num_active);
  out.set_int("moe_intermediate_size", config.moe->expert_length);
  out.set_bool("norm_topk_prob", config.moe->normalise);
  std::vector<int64_t> dense;
  for (size_t i = 0; i < config.is_moe_layer.size(); ++i) {
    if (!config.is_moe_layer[i]) dense.push_back(static_cast<int64_t>(i));
  }
  out.set_ints("mlp_only_layers", dense);
  out.set_int("decoder_sparse_step", 1);
}

std::string hf_generation_config(const Metadata& metadata) {
  ordered_json out = ordered_json::object();
  const auto id = [&](const char* key) -> std::optional<int64_t> {
    const auto found = metadata.get_int(std::string("tokenizer.ggml.") + key);
    // Files write "none" as the largest 32-bit number.
    if (!found.ok() || !*found || **found < 0 || **found >= INT32_MAX) return std::nullopt;
    return **found;
  };
  if (const auto bos = id("bos_token_id")) out["bos_token_id"] = *bos;
  std::vector<int64_t> ends;
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const auto end = id(key);
    if (end && std::ranges::find(ends, *end) == ends.end()) ends.push_back(*end);
  }
  if (ends.size() == 1) out["eos_token_id"] = ends.front();
  if (ends.size() > 1) out["eos_token_id"] = ends;
  for (const auto& [to, from] : {std::pair("temperature", "temp"),
                                 {"top_k", "top_k"},
                                 {"top_p", "top_p"},
                                 {"min_p", "min_p"},
                                 {"repetition_penalty", "penalty_repeat"}}) {
    const auto found = metadata.get_float(std::string("general.sampling.") + from);
    if (!found.ok() || !*found || !(std::abs(**found) <= INT32_MAX)) continue;
    const double value = **found;
    const bool is_count = std::string_view(to) == "top_k";
    if (std::string_view(from) == "temp") out["do_sample"] = value > 0;
    if (std::string_view(from) == "temp" && value <= 0) continue;
    out[to] = is_count ? ordered_json(static_cast<int64_t>(value)) : ordered_json(shortest(value));
  }
  return out.dump(2) + "\n";
}

}  // namespace headrace
