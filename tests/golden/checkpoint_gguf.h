// Hugging Face checkpoints as GGUF files, written as the usual converters write them: GGUF's names,
// each architecture's order of query and key rows, Gemma's norms with their 1 added, Llama 3's
// scaling of frequencies as a tensor of divisors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "golden/safetensors.h"
#include "tests/gguf_builder.h"

namespace headrace::golden {

using TensorNames = std::map<std::string_view, std::string_view>;

/// How the checkpoints of an architecture become GGUF files.
struct Conversion {
  std::string_view hf_name;    ///< `architectures[0]` of config.json
  std::string_view gguf_name;  ///< `general.architecture`
  bool interleaves_rope_rows = false;
  bool adds_one_to_norms = false;
  TensorNames layer_names = {};  ///< those that differ from usual_layer_names()
};

/// Null for an architecture that there is no conversion for.
inline const Conversion* find_conversion(std::string_view hf_name) {
  static const std::vector<Conversion> conversions = {
      {.hf_name = "LlamaForCausalLM", .gguf_name = "llama", .interleaves_rope_rows = true},
      {.hf_name = "MistralForCausalLM", .gguf_name = "llama", .interleaves_rope_rows = true},
      {.hf_name = "Gemma3ForCausalLM",
       .gguf_name = "gemma3",
       .adds_one_to_norms = true,
       .layer_names = {{"post_attention_layernorm", "post_attention_norm"},
                       {"pre_feedforward_layernorm", "ffn_norm"},
                       {"post_feedforward_layernorm", "post_ffw_norm"}}},
  };
  const auto found = std::find_if(conversions.begin(), conversions.end(),
                                  [&](const Conversion& one) { return one.hf_name == hf_name; });
  return found == conversions.end() ? nullptr : &*found;
}

inline const TensorNames& usual_layer_names() {
  static const TensorNames names = {
      {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
  };
  return names;
}

/// "model.layers.3.mlp.up_proj.weight" is "blk.3.ffn_up.weight". Throws std::runtime_error for a
/// name that is not known.
inline std::string gguf_tensor_name(const Conversion& conversion, const std::string& hf_name) {
  if (hf_name == "model.embed_tokens.weight") return "token_embd.weight";
  if (hf_name == "model.norm.weight") return "output_norm.weight";
  if (hf_name == "lm_head.weight") return "output.weight";
  constexpr std::string_view kLayers = "model.layers.";
  const size_t part = hf_name.find('.', kLayers.size());
  const size_t suffix = hf_name.rfind('.');
  if (hf_name.starts_with(kLayers) && part < suffix) {
    const auto name = std::string_view(hf_name).substr(part + 1, suffix - part - 1);
    for (const TensorNames* names : {&conversion.layer_names, &usual_layer_names()}) {
      const auto found = names->find(name);
      if (found == names->end()) continue;
      return "blk." + hf_name.substr(kLayers.size(), part + 1 - kLayers.size()) +
             std::string(found->second) + hf_name.substr(suffix);
    }
  }
  throw std::runtime_error("no GGUF name for the tensor " + hf_name);
}

/// Queries or keys whose pairs of rows are (i, i + dim / 2) in each head: brings them to
/// (2 i, 2 i + 1).
inline NamedTensor interleave_rows(const NamedTensor& tensor, int64_t num_heads) {
  const int64_t dim = tensor.shape.at(0) / num_heads;
  const int64_t cols = static_cast<int64_t>(tensor.values.size()) / tensor.shape[0];
  NamedTensor out{tensor.shape, {}};
  out.values.reserve(tensor.values.size());
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t i = row % dim;
    const int64_t from = row - i + i / 2 + i % 2 * (dim / 2);
    const auto begin = tensor.values.begin() + from * cols;
    out.values.insert(out.values.end(), begin, begin + cols);
  }
  return out;
}

/// What the frequencies of Llama 3.1 and later are divided by: long wavelengths by the factor,
/// short ones by nothing, those between by a blend. Source: the models' `rope_type` "llama3".
inline std::vector<float> llama3_divisors(const nlohmann::json& rope, int64_t dim) {
  const auto number = [&](const char* key) { return rope.at(key).get<double>(); };
  const double low = number("low_freq_factor");
  const double high = number("high_freq_factor");
  std::vector<float> divisors;
  for (int64_t i = 0; i < dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(dim);
    const double wavelength = 2 * std::numbers::pi * std::pow(number("rope_theta"), exponent);
    const double turns = number("original_max_position_embeddings") / wavelength;
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / number("factor") + kept)));
  }
  return divisors;
}

inline int64_t head_dim_of(const nlohmann::json& config) {
  if (config.contains("head_dim") && !config["head_dim"].is_null()) return config["head_dim"];
  return config.at("hidden_size").get<int64_t>() / config.at("num_attention_heads").get<int64_t>();
}

/// The keys and the tensor of rotary embeddings.
inline void add_rope(test::GgufBuilder& file, const std::string& prefix,
                     const nlohmann::json& config) {
  const int64_t dim = head_dim_of(config);
  const nlohmann::json& parameters = config.at("rope_parameters");
  // Where layers with a window have their own, those of the others are the model's.
  const bool has_two = parameters.contains("full_attention");
  const nlohmann::json& rope = has_two ? parameters["full_attention"] : parameters;
  file.add(prefix + "rope.dimension_count", static_cast<uint32_t>(dim));
  file.add(prefix + "rope.freq_base", rope.at("rope_theta").get<float>());
  if (has_two) {
    const nlohmann::json& local = parameters.at("sliding_attention");
    if (local.at("rope_type") != "default") throw std::runtime_error("scaled window layers");
    file.add(prefix + "rope.freq_base_swa", local.at("rope_theta").get<float>());
  }
  if (rope.at("rope_type") == "llama3") {
    file.add_f32("rope_freqs.weight", {dim / 2}, llama3_divisors(rope, dim));
  } else if (rope["rope_type"] != "default") {
    throw std::runtime_error("no conversion of rope_type " + rope["rope_type"].dump());
  }
}

inline void add_metadata(test::GgufBuilder& file, const std::string& prefix,
                         const nlohmann::json& config) {
  const auto add_int = [&](const char* gguf_key, int64_t value) {
    file.add(prefix + gguf_key, static_cast<uint32_t>(value));
  };
  const auto copy_int = [&](const char* gguf_key, const char* hf_key) {
    add_int(gguf_key, config.at(hf_key).get<int64_t>());
  };
  const auto is_set = [&](const char* hf_key) {
    return config.contains(hf_key) && !config[hf_key].is_null();
  };
  copy_int("context_length", "max_position_embeddings");
  copy_int("block_count", "num_hidden_layers");
  copy_int("embedding_length", "hidden_size");
  copy_int("feed_forward_length", "intermediate_size");
  copy_int("attention.head_count", "num_attention_heads");
  copy_int("attention.head_count_kv", "num_key_value_heads");
  add_int("attention.key_length", head_dim_of(config));
  add_int("attention.value_length", head_dim_of(config));
  file.add(prefix + "attention.layer_norm_rms_epsilon", config.at("rms_norm_eps").get<float>());
  if (is_set("sliding_window")) copy_int("attention.sliding_window", "sliding_window");
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (is_set(key)) file.add(prefix + key, config[key].get<float>());
  }
}

/// The GGUF file of a folder with config.json and model.safetensors. Without a vocabulary, which a
/// model is loaded without. Throws an exception of std where the folder holds anything unexpected.
inline test::GgufBuilder gguf_of_checkpoint(const std::filesystem::path& folder,
                                            const nlohmann::json& config,
                                            const Conversion& conversion) {
  const std::string prefix = std::string(conversion.gguf_name) + ".";
  test::GgufBuilder file;
  file.add("general.architecture", conversion.gguf_name);
  add_metadata(file, prefix, config);
  add_rope(file, prefix, config);
  for (auto& [hf_name, tensor] : read_safetensors(folder / "model.safetensors")) {
    const std::string name = gguf_tensor_name(conversion, hf_name);
    NamedTensor out = tensor;
    for (const auto& [part, heads] : {std::pair(".attn_q.", "num_attention_heads"),
                                      std::pair(".attn_k.", "num_key_value_heads")}) {
      if (conversion.interleaves_rope_rows && name.find(part) != std::string::npos) {
        out = interleave_rows(tensor, config.at(heads).get<int64_t>());
      }
    }
    if (conversion.adds_one_to_norms && name.ends_with("_norm.weight")) {
      for (float& value : out.values) value += 1;
    }
    file.add_f32(name, out.shape, out.values);
  }
  return file;
}

}  // namespace headrace::golden
