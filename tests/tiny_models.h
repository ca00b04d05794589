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
  if (options.window > 0) u32("attention.sliding_window", options.window);
  if (options.final_soft_cap > 0) {
    model.file.add(prefix + "final_logit_softcapping", static_cast<float>(options.final_soft_cap));
  }
  return model;
}

inline void add_tiny_tensors(TinyModel& model) {
  const TinyOptions& o = model.options;
  std::mt19937 random(o.seed);
  std::normal_distribution<float> normal;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    std::vector<float> values(static_cast<size_t>(rows * cols));
    const float scale = 1.5F / std::sqrt(static_cast<float>(cols));
    for (float& value : values) value = scale * normal(random);
    model.add(name + ".weight", {rows, cols}, values);
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
    matrix(layer + "ffn_gate", o.feed_forward, o.embedding);
    matrix(layer + "ffn_up", o.feed_forward, o.embedding);
    matrix(layer + "ffn_down", o.embedding, o.feed_forward);
    if (o.has_biases) {
      vector(layer + "attn_q.bias", o.num_heads * o.head_dim, 0, 0.5F);
      vector(layer + "attn_k.bias", o.num_kv_heads * o.head_dim, 0, 0.5F);
      vector(layer + "attn_v.bias", o.num_kv_heads * o.head_dim, 0, 0.5F);
      vector(layer + "attn_output.bias", o.embedding, 0, 0.5F);
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
