// A tiny encoder of BERT's kind with random weights, as a GGUF file, and its direct computation in
// double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/token.h"
#include "tests/tiny_models.h"

namespace headrace::test {

struct TinyBertOptions {
  int64_t num_layers = 2;
  int64_t embedding = 32;
  int64_t feed_forward = 48;
  int64_t num_heads = 4;
  int64_t vocab = 50;
  int64_t context = 64;
  int64_t positions = 64;   ///< rows of the positions; right where they are `context`
  int64_t num_classes = 0;  ///< 0: no head
  double eps = 1e-6;
};

inline TinyModel tiny_bert(const TinyBertOptions& options) {
  TinyModel model;
  model.options.architecture = "bert";
  model.options.vocab = options.vocab;
  const auto u32 = [&](const std::string& name, int64_t value) {
    model.file.add("bert." + name, static_cast<uint32_t>(value));
  };
  model.file.add("general.architecture", "bert");
  u32("context_length", options.context);
  u32("block_count", options.num_layers);
  u32("embedding_length", options.embedding);
  u32("feed_forward_length", options.feed_forward);
  u32("attention.head_count", options.num_heads);
  u32("pooling_type", 1);
  model.file.add("bert.attention.layer_norm_epsilon", static_cast<float>(options.eps));
  model.file.add("bert.attention.causal", false);

  std::mt19937 random(7);
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape, float around,
                       float scale) {
    std::normal_distribution<float> normal(around, scale);
    int64_t size = 1;
    for (const int64_t extent : shape) size *= extent;
    std::vector<float> values(static_cast<size_t>(size));
    for (float& value : values) value = normal(random);
    model.add(name, shape, values);
  };
  const auto linear = [&](const std::string& name, int64_t rows, int64_t cols) {
    add(name + ".weight", {rows, cols}, 0, 0.3F);
    add(name + ".bias", {rows}, 0, 0.3F);
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {options.embedding}, 1, 0.1F);
    add(name + ".bias", {options.embedding}, 0, 0.1F);
  };
  const int64_t embedding = options.embedding;
  add("token_embd.weight", {options.vocab, embedding}, 0, 1);
  add("position_embd.weight", {options.positions, embedding}, 0, 0.5F);
  add("token_types.weight", {2, embedding}, 0, 0.5F);
  norm("token_embd_norm");
  for (int64_t i = 0; i < options.num_layers; ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      linear(block + name, embedding, embedding);
    }
    norm(block + "attn_output_norm");
    linear(block + "ffn_up", options.feed_forward, embedding);
    linear(block + "ffn_down", embedding, options.feed_forward);
    norm(block + "layer_output_norm");
  }
  if (options.num_classes > 0) {
    linear("cls", embedding, embedding);
    linear("cls.output", options.num_classes, embedding);
  }
  return model;
}

/// arXiv:1810.04805 and transformers' BertModel, row by row.
class DirectBert {
 public:
  DirectBert(const TinyModel& model, const TinyBertOptions& options)
      : model_(model), options_(options) {}

  using Row = std::vector<double>;

  /// The last hidden states of a text; `second`: where its second part begins, or -1.
  std::vector<Row> rows(std::span<const TokenId> tokens, int64_t second = -1) const {
    std::vector<Row> x;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool is_second = second >= 0 && static_cast<int64_t>(i) >= second;
      Row row = row_of("token_embd.weight", static_cast<size_t>(tokens[i]));
      add(row, row_of("position_embd.weight", i));
      add(row, row_of("token_types.weight", is_second ? 1 : 0));
      x.push_back(norm("token_embd_norm", row));
    }
    for (int64_t i = 0; i < options_.num_layers; ++i) layer("blk." + std::to_string(i) + ".", x);
    return x;
  }

  /// What the head says of the first row.
  Row classes(const Row& first) const {
    Row pooled = linear("cls", first);
    for (double& value : pooled) value = std::tanh(value);
    return linear("cls.output", pooled);
  }

 private:
  const std::vector<float>& values(const std::string& name) const {
    return model_.tensors.at(name).values;
  }
  Row row_of(const std::string& name, size_t index) const {
    const auto begin = values(name).begin() +
                       static_cast<std::ptrdiff_t>(index * static_cast<size_t>(options_.embedding));
    return {begin, begin + options_.embedding};
  }
  static void add(Row& to, const Row& more) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += more[i];
  }
  Row linear(const std::string& name, const Row& x) const {
    const auto& weight = values(name + ".weight");
    const auto& bias = values(name + ".bias");
    Row out(bias.begin(), bias.end());
    for (size_t r = 0; r < out.size(); ++r) {
      for (size_t c = 0; c < x.size(); ++c) {
        out[r] += static_cast<double>(weight[r * x.size() + c]) * x[c];
      }
    }
    return out;
  }
  Row norm(const std::string& name, const Row& x) const {
    double mean = 0;
    double square = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x) {
      square += (value - mean) * (value - mean) / static_cast<double>(x.size());
    }
    Row out(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      out[i] = (x[i] - mean) / std::sqrt(square + options_.eps) *
                   static_cast<double>(values(name + ".weight")[i]) +
               static_cast<double>(values(name + ".bias")[i]);
    }
    return out;
  }
  /// Each row's attention to all rows.
  Row attend(const Row& q, const std::vector<Row>& k, const std::vector<Row>& v) const {
    Row out(q.size(), 0.0);
    const auto dim = static_cast<size_t>(options_.embedding / options_.num_heads);
    for (size_t begin = 0; begin < q.size(); begin += dim) {
      Row weights(k.size());
      double sum = 0;
      for (size_t j = 0; j < k.size(); ++j) {
        double score = 0;
        for (size_t d = begin; d < begin + dim; ++d) score += q[d] * k[j][d];
        weights[j] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        sum += weights[j];
      }
      for (size_t j = 0; j < k.size(); ++j) {
        for (size_t d = begin; d < begin + dim; ++d) out[d] += weights[j] / sum * v[j][d];
      }
    }
    return out;
  }
  void layer(const std::string& block, std::vector<Row>& x) const {
    std::vector<Row> q;
    std::vector<Row> k;
    std::vector<Row> v;
    for (const Row& row : x) {
      q.push_back(linear(block + "attn_q", row));
      k.push_back(linear(block + "attn_k", row));
      v.push_back(linear(block + "attn_v", row));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      add(x[i], linear(block + "attn_output", attend(q[i], k, v)));
      x[i] = norm(block + "attn_output_norm", x[i]);
      Row hidden = linear(block + "ffn_up", x[i]);
      for (double& value : hidden) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
      add(x[i], linear(block + "ffn_down", hidden));
      x[i] = norm(block + "layer_output_norm", x[i]);
    }
  }

  const TinyModel& model_;
  const TinyBertOptions options_;
};

}  // namespace headrace::test
