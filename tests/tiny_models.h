// Tiny models with random weights, written as GGUF files: for tests of loading, forward pass and
// engine that need no downloads. Every weight is also kept in memory, for a direct computation.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/gguf_builder.h"

namespace headrace::test {

struct TinyTensor {
  std::vector<int64_t> shape;  ///< {rows, cols} or {size}
  std::vector<float> values;
};

/// Sizes and features of a tiny model. Defaults: grouped queries, a head of its own.
struct TinyOptions {
  std::string architecture = "llama";  ///< or "gemma3"
  int64_t num_layers = 2;
  int64_t embedding = 32;
  int64_t feed_forward = 48;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 8;
  int64_t rope_dims = 8;
  int64_t vocab = 50;
  int64_t context = 256;
  int64_t window = 0;
  double rope_base = 10000;
  double eps = 1e-5;
  double final_soft_cap = 0;
  int64_t num_experts = 0;  ///< 0: dense
  int64_t num_active = 2;
  int64_t expert_length = 48;
  int64_t shared_length = 0;
  int64_t num_dense_layers = 0;  ///< before those with experts
  bool normalises = true;
  bool has_shared_gate = false;
  bool has_stacked_experts = true;  ///< else a tensor an expert, as in older files
  bool has_own_head = true;
  bool has_biases = false;
  uint32_t seed = 1;
};

struct TinyModel {
  TinyOptions options;
  GgufBuilder file;
  std::map<std::string, TinyTensor> tensors;

  void add(const std::string& name, const std::vector<int64_t>& shape,
           const std::vector<float>& values) {
    tensors[name] = {shape, values};
    file.add_f32(name, shape, values);
  }
};

/// Metadata only; add_tiny_tensors() adds the weights.
inline TinyModel tiny_metadata(const TinyOptions& options) {
  TinyModel model;
  model.options = options;
  const std::string prefix = options.architecture + ".";
  const auto u32 = [&](const std::string& name, int64_t value) {
    model.file.add(prefix + name, static_cast<uint32_t>(value));
  };
  model.file.add("general.architecture", options.architecture);
  u32("context_length", options.context);
  u32("block_count", options.num_layers);
  u32("embedding_length", options.embedding);
  u32("feed_forward_length", options.feed_forward);
  u32("attention.head_count", options.num_heads);
  u32("attention.head_count_kv", options.num_kv_heads);
  u32("attention.key_length", options.head_dim);
  u32("attention.value_length", options.head_dim);
  u32("rope.dimension_count", options.rope_dims);
  model.file.add(prefix + "rope.freq_base", static_cast<float>(options.rope_base));
  model.file.add(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(options.eps));
  if (options.num_experts > 0) {
    u32("expert_count", options.num_experts);
    u32("expert_used_count", options.num_active);
    u32("expert_feed_forward_length", options.expert_length);
    if (options.shared_length > 0) u32("expert_shared_feed_forward_length", options.shared_length);
    if (options.num_dense_layers > 0) u32("leading_dense_block_count", options.num_dense_layers);
    if (!options.normalises) model.file.add(prefix + "expert_weights_norm", false);
  }
  if (options.window > 0) u32("attention.sliding_window", options.window);
  if (options.final_soft_cap > 0) {
    model.file.add(prefix + "final_logit_softcapping", static_cast<float>(options.final_soft_cap));
  }
  return model;
}

/// The router and the experts of a layer; values(rows, cols) makes a matrix. In `tensors` each
/// expert is one of its own, whatever the file has.
template <class Values>
void add_tiny_experts(TinyModel& model, const std::string& layer, Values&& values) {
  const TinyOptions& o = model.options;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    model.add(layer + name + ".weight", {rows, cols}, values(rows, cols));
  };
  matrix("ffn_gate_inp", o.num_experts, o.embedding);
  for (const std::string part : {"ffn_gate", "ffn_up", "ffn_down"}) {
    const int64_t rows = part == "ffn_down" ? o.embedding : o.expert_length;
    const int64_t cols = part == "ffn_down" ? o.expert_length : o.embedding;
    std::vector<float> stacked;
    for (int64_t e = 0; e < o.num_experts; ++e) {
      const std::string name = layer + part + "." + std::to_string(e) + ".weight";
      model.tensors[name] = {{rows, cols}, values(rows, cols)};
      const std::vector<float>& expert = model.tensors[name].values;
      if (!o.has_stacked_experts) model.file.add_f32(name, {rows, cols}, expert);
      stacked.insert(stacked.end(), expert.begin(), expert.end());
    }
    if (!o.has_stacked_experts) continue;
    model.file.add_f32(layer + part + "_exps.weight", {o.num_experts, rows, cols}, stacked);
  }
  if (o.shared_length == 0) return;
  matrix("ffn_gate_shexp", o.shared_length, o.embedding);
  matrix("ffn_up_shexp", o.shared_length, o.embedding);
  matrix("ffn_down_shexp", o.embedding, o.shared_length);
  if (!o.has_shared_gate) return;
  const std::string gate = layer + "ffn_gate_inp_shexp.weight";
  model.tensors[gate] = {{1, o.embedding}, values(1, o.embedding)};
  model.file.add_f32(gate, {o.embedding}, model.tensors[gate].values);
}

inline void add_tiny_tensors(TinyModel& model) {
  const TinyOptions& o = model.options;
  std::mt19937 random(o.seed);
  std::normal_distribution<float> normal;
  const auto values_of = [&](int64_t rows, int64_t cols) {
    std::vector<float> values(static_cast<size_t>(rows * cols));
    const float scale = 1.5F / std::sqrt(static_cast<float>(cols));
    for (float& value : values) value = scale * normal(random);
    return values;
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    model.add(name + ".weight", {rows, cols}, values_of(rows, cols));
  };
  const auto vector = [&](const std::string& name, int64_t size, float mean, float spread) {
    std::vector<float> values(static_cast<size_t>(size));
    for (float& value : values) value = mean + spread * normal(random);
    model.add(name, {size}, values);
  };
  const auto norm = [&](const std::string& name, int64_t size) {
    vector(name + ".weight", size, 1.0F, 0.2F);
  };

  matrix("token_embd", o.vocab, o.embedding);
  norm("output_norm", o.embedding);
  if (o.has_own_head) matrix("output", o.vocab, o.embedding);
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    norm(layer + "attn_norm", o.embedding);
    matrix(layer + "attn_q", o.num_heads * o.head_dim, o.embedding);
    matrix(layer + "attn_k", o.num_kv_heads * o.head_dim, o.embedding);
    matrix(layer + "attn_v", o.num_kv_heads * o.head_dim, o.embedding);
    matrix(layer + "attn_output", o.embedding, o.num_heads * o.head_dim);
    norm(layer + "ffn_norm", o.embedding);
    const bool has_experts = o.num_experts > 0 && i >= o.num_dense_layers;
    if (has_experts) {
      add_tiny_experts(model, layer, values_of);
    } else {
      matrix(layer + "ffn_gate", o.feed_forward, o.embedding);
      matrix(layer + "ffn_up", o.feed_forward, o.embedding);
      matrix(layer + "ffn_down", o.embedding, o.feed_forward);
    }
    if (o.has_biases) {
      vector(layer + "attn_q.bias", o.num_heads * o.head_dim, 0, 0.5F);
      vector(layer + "attn_k.bias", o.num_kv_heads * o.head_dim, 0, 0.5F);
      vector(layer + "attn_v.bias", o.num_kv_heads * o.head_dim, 0, 0.5F);
      vector(layer + "attn_output.bias", o.embedding, 0, 0.5F);
    }
    if (o.has_biases && !has_experts) {
      vector(layer + "ffn_gate.bias", o.feed_forward, 0, 0.5F);
      vector(layer + "ffn_up.bias", o.feed_forward, 0, 0.5F);
      vector(layer + "ffn_down.bias", o.embedding, 0, 0.5F);
    }
    if (o.architecture == "gemma3") {
      norm(layer + "attn_q_norm", o.head_dim);
      norm(layer + "attn_k_norm", o.head_dim);
      norm(layer + "post_attention_norm", o.embedding);
      norm(layer + "post_ffw_norm", o.embedding);
    }
  }
}

inline TinyModel tiny_model(const TinyOptions& options) {
  TinyModel model = tiny_metadata(options);
  add_tiny_tensors(model);
  return model;
}

/// A dense layer, then two of an odd number of experts that are no multiple of a block wide, and a
/// shared expert with a gate.
inline TinyOptions tiny_moe_options() {
  TinyOptions options;
  options.num_layers = 3;
  options.num_dense_layers = 1;
  options.num_experts = 5;
  options.shared_length = 56;
  options.has_shared_gate = true;
  return options;
}

/// Seven layers, of which the sixth sees everything and the others a window.
inline TinyOptions tiny_gemma3_options() {
  TinyOptions options;
  options.architecture = "gemma3";
  options.num_layers = 7;
  options.num_kv_heads = 1;
  options.head_dim = 16;
  options.rope_dims = 16;
  options.window = 20;
  options.rope_base = 1000000;
  options.eps = 1e-6;
  options.has_own_head = false;
  return options;
}

}  // namespace headrace::test
