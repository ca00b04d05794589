// See hf_model.h.
#include "model/hf/hf_model.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "model/config.h"
#include "model/hf/hf_keys.h"

namespace headrace {
namespace {

constexpr std::array kDecoderNames = {
    HfName{"model.embed_tokens", "token_embd"},
    HfName{"model.norm", "output_norm"},
    HfName{"lm_head", "output"},
    HfName{"model.layers.#.input_layernorm", "blk.#.attn_norm"},
    HfName{"model.layers.#.self_attn.q_proj", "blk.#.attn_q"},
    HfName{"model.layers.#.self_attn.k_proj", "blk.#.attn_k"},
    HfName{"model.layers.#.self_attn.v_proj", "blk.#.attn_v"},
    HfName{"model.layers.#.self_attn.o_proj", "blk.#.attn_output"},
    HfName{"model.layers.#.self_attn.q_norm", "blk.#.attn_q_norm"},
    HfName{"model.layers.#.self_attn.k_norm", "blk.#.attn_k_norm"},
    HfName{"model.layers.#.post_attention_layernorm", "blk.#.ffn_norm"},
    HfName{"model.layers.#.mlp.gate_proj", "blk.#.ffn_gate"},
    HfName{"model.layers.#.mlp.up_proj", "blk.#.ffn_up"},
    HfName{"model.layers.#.mlp.down_proj", "blk.#.ffn_down"},
    // Mixture of experts.
    HfName{"model.layers.#.mlp.gate", "blk.#.ffn_gate_inp"},
    HfName{"model.layers.#.mlp.experts.#.gate_proj", "blk.#.ffn_gate.#"},
    HfName{"model.layers.#.mlp.experts.#.up_proj", "blk.#.ffn_up.#"},
    HfName{"model.layers.#.mlp.experts.#.down_proj", "blk.#.ffn_down.#"},
    // Buffers that older checkpoints hold.
    HfName{"model.layers.#.self_attn.rotary_emb.inv_freq", "", HfChange::skip},
    HfName{"model.rotary_emb.inv_freq", "", HfChange::skip},
};

}  // namespace

HfModel::HfModel(HfConfig config, std::string_view architecture)
    : config_(std::move(config)), prefix_(std::string(architecture) + ".") {}

void HfModel::set(std::string_view name, MetaValue value, std::string_view hf_key) {
  Key& key = keys_.emplace_back();
  key.name = prefix_ + std::string(name);
  key.origin = config_.place(hf_key.empty() ? name : hf_key);
  key.value = std::move(value);
}

void HfModel::set_int(std::string_view name, int64_t value, std::string_view hf_key) {
  // Unsigned where it can be, as readers of GGUF files insist.
  if (value < 0) return set(name, value, hf_key);
  set(name, static_cast<uint64_t>(value), hf_key);
}

void HfModel::set_float(std::string_view name, double value, std::string_view hf_key) {
  // GGUF's numbers have 32 bits: so a file that is written of the directory says the same.
  const bool fits = std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
  set(name, fits ? static_cast<double>(static_cast<float>(value)) : value, hf_key);
}

void HfModel::set_bool(std::string_view name, bool value, std::string_view hf_key) {
  set(name, value, hf_key);
}

void HfModel::set_text(std::string_view name, std::string value, std::string_view hf_key) {
  set(name, false, hf_key);
  keys_.back().text = std::move(value);
  keys_.back().is_text = true;
}

void HfModel::set_ints(std::string_view name, std::vector<int64_t> values,
                       std::string_view hf_key) {
  set(name, std::move(values), hf_key);
}

void HfModel::missing(std::string_view hf_key) {
  config_.fail(hf_key, "the key is missing");
}

void HfModel::copy_int(std::string_view name, std::string_view hf_key) {
  if (!config_.has(hf_key)) return missing(hf_key);
  if (const auto value = config_.integer(hf_key)) set_int(name, *value, hf_key);
}

void HfModel::copy_float(std::string_view name, std::string_view hf_key) {
  if (!config_.has(hf_key)) return missing(hf_key);
  if (const auto value = config_.number(hf_key)) set_float(name, *value, hf_key);
}

void HfModel::copy_int(std::string_view name, std::string_view hf_key, int64_t missing_value) {
  set_int(name, config_.integer(hf_key).value_or(missing_value), hf_key);
}

void HfModel::copy_float(std::string_view name, std::string_view hf_key, double missing_value) {
  set_float(name, config_.number(hf_key).value_or(missing_value), hf_key);
}

void HfModel::expect_text(std::string_view hf_key, std::span<const std::string_view> values) {
  const auto found = config_.text(hf_key);
  if (!found) return;
  std::string wanted;
  for (const std::string_view value : values) {
    if (*found == value) return;
    wanted += (wanted.empty() ? "'" : " or '") + std::string(value) + "'";
  }
  config_.fail(hf_key, "expected " + wanted + ", found '" + *found + "'; others are not built in",
               ErrorCode::unsupported);
}

void HfModel::expect_bool(std::string_view hf_key, bool value) {
  const auto found = config_.boolean(hf_key);
  if (!found || *found == value) return;
  config_.fail(
      hf_key, std::string("expected ") + (value ? "true" : "false") + "; the other is not built in",
      ErrorCode::unsupported);
}

void HfModel::add_names(std::span<const HfName> names) {
  names_.insert(names_.end(), names.begin(), names.end());
}

void HfModel::add_tensor(std::string name, std::vector<float> values) {
  extra_.push_back({std::move(name), std::move(values)});
}

void HfModel::write_keys(Metadata& metadata, std::deque<std::string>& texts) const {
  for (const Key& key : keys_) {
    metadata.set_origin(key.name, key.origin);
    if (key.is_text) {
      metadata.set(key.name, std::string_view(texts.emplace_back(key.text)));
    } else {
      metadata.set(key.name, key.value);
    }
  }
}

int64_t hf_head_dim(const HfConfig& config) {
  if (const auto dim = config.integer("head_dim")) return *dim;
  const int64_t heads = config.integer("num_attention_heads").value_or(0);
  return heads > 0 ? config.integer("hidden_size").value_or(0) / heads : 0;
}

void expect_silu(HfModel& model) {
  constexpr std::array<std::string_view, 2> kNames = {"silu", "swish"};
  model.expect_text("hidden_act", kNames);
}

void read_hf_decoder(HfModel& model) {
  const HfConfig& config = model.config();
  read_hf_keys(model, hf_decoder_keys());
  if (config.has("num_key_value_heads")) {
    model.copy_int("attention.head_count_kv", "num_key_value_heads");
  }
  if (const int64_t dim = hf_head_dim(config); dim > 0) {
    const std::string_view key = config.has("head_dim") ? "head_dim" : "hidden_size";
    model.set_int("attention.key_length", dim, key);
    model.set_int("attention.value_length", dim, key);
  }
  if (config.has("vocab_size")) model.copy_int("vocab_size", "vocab_size");
  model.add_names(kDecoderNames);
}

void set_hf_windows(HfModel& model, int64_t window, bool (*is_window)(const HfConfig&, int64_t)) {
  constexpr int64_t kMostLayers = 4096;
  const HfConfig& config = model.config();
  const std::vector<std::string> types = config.texts("layer_types");
  const int64_t layers = config.integer("num_hidden_layers").value_or(0);
  if (window <= 0 || layers > kMostLayers) return;
  if (!types.empty() && static_cast<int64_t>(types.size()) != layers) {
    return config.fail("layer_types", layer_count_fault(layers, types.size()));
  }
  std::vector<int64_t> flags;
  bool any = false;
  for (int64_t i = 0; i < layers; ++i) {
    const bool slides =
        types.empty() ? is_window(config, i) : types[static_cast<size_t>(i)] == "sliding_attention";
    if (!types.empty() && !slides && types[static_cast<size_t>(i)] != "full_attention") {
      return config.fail("layer_types",
                         "has '" + types[static_cast<size_t>(i)] + "', which is not built in",
                         ErrorCode::unsupported);
    }
    flags.push_back(slides ? 1 : 0);
    any |= slides;
  }
  if (!any) return;
  model.set_int("attention.sliding_window", window, "sliding_window");
  model.set_ints("attention.sliding_window_pattern", std::move(flags), "layer_types");
}

void add_one_to_norms(HfModel& model) {
  static constexpr std::array kNames = {
      HfName{"model.norm", "output_norm", HfChange::add_one},
      HfName{"model.layers.#.input_layernorm", "blk.#.attn_norm", HfChange::add_one},
      HfName{"model.layers.#.self_attn.q_norm", "blk.#.attn_q_norm", HfChange::add_one},
      HfName{"model.layers.#.self_attn.k_norm", "blk.#.attn_k_norm", HfChange::add_one},
      HfName{"model.layers.#.post_attention_layernorm", "blk.#.ffn_norm", HfChange::add_one},
  };
  model.add_names(kNames);
}

}  // namespace headrace
