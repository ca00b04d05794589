// See direct_model.h.
#include "tests/direct_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headrace::test {
namespace {

using Vector = std::vector<double>;

struct Direct {
  const TinyModel& model;
  const DirectOptions& options;
  const TinyOptions& o = model.options;
  bool is_gemma = o.architecture == "gemma3";

  const TinyTensor& tensor(const std::string& name) const { return model.tensors.at(name); }

  Vector product(const std::string& name, const Vector& x) const {
    const TinyTensor& w = tensor(name + ".weight");
    const auto rows = static_cast<size_t>(w.shape[0]);
    Vector out(rows, 0.0);
    const auto bias = model.tensors.find(name + ".bias");
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < x.size(); ++c) {
        out[r] += static_cast<double>(w.values[r * x.size() + c]) * x[c];
      }
      if (bias != model.tensors.end()) out[r] += static_cast<double>(bias->second.values[r]);
    }
    return out;
  }

  Vector norm(const std::string& name, const Vector& x) const {
    double sum = 0;
    for (const double value : x) sum += value * value;
    const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + o.eps);
    Vector out(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      out[i] = x[i] * scale * static_cast<double>(tensor(name + ".weight").values[i]);
    }
    return out;
  }

  // Gemma's files pair (i, i + dims / 2), Llama's (2 i, 2 i + 1).
  void rotate(double* head, double position, const Vector& inv_freq) const {
    for (size_t i = 0; i < inv_freq.size(); ++i) {
      double& a = head[is_gemma ? i : 2 * i];
      double& b = head[is_gemma ? i + inv_freq.size() : 2 * i + 1];
      const double c = std::cos(position * inv_freq[i]) * options.rope_factor;
      const double s = std::sin(position * inv_freq[i]) * options.rope_factor;
      const double first = a * c - b * s;
      b = b * c + a * s;
      a = first;
    }
  }

  // Norm (Gemma) and rotation of all heads of a row.
  void finish_heads(Vector& row, const std::string& norm_name, double position,
                    const Vector& inv_freq) const {
    const auto dim = static_cast<size_t>(o.head_dim);
    for (size_t begin = 0; begin < row.size(); begin += dim) {
      if (is_gemma) {
        const Vector head(row.begin() + static_cast<std::ptrdiff_t>(begin),
                          row.begin() + static_cast<std::ptrdiff_t>(begin + dim));
        const Vector normed = norm(norm_name, head);
        std::copy(normed.begin(), normed.end(), row.begin() + static_cast<std::ptrdiff_t>(begin));
      }
      rotate(row.data() + begin, position, inv_freq);
    }
  }

  // One query row against all keys up to its own.
  Vector attend(const Vector& q, const std::vector<Vector>& keys, const std::vector<Vector>& values,
                int64_t window) const {
    const auto dim = static_cast<size_t>(o.head_dim);
    const auto per_kv = static_cast<size_t>(o.num_heads / o.num_kv_heads);
    Vector out(q.size(), 0.0);
    for (size_t head = 0; head < static_cast<size_t>(o.num_heads); ++head) {
      const size_t kv = head / per_kv * dim;
      size_t first = 0;
      if (window > 0 && static_cast<int64_t>(keys.size()) > window) {
        first = keys.size() - static_cast<size_t>(window);
      }
      Vector scores;
      for (size_t j = first; j < keys.size(); ++j) {
        double score = 0;
        for (size_t d = 0; d < dim; ++d) score += q[head * dim + d] * keys[j][kv + d];
        scores.push_back(score / std::sqrt(static_cast<double>(dim)));
      }
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      for (size_t j = first; j < keys.size(); ++j) {
        for (size_t d = 0; d < dim; ++d) {
          out[head * dim + d] += scores[j - first] / sum * values[j][kv + d];
        }
      }
    }
    return out;
  }

  double activate(double x) const {
    if (!is_gemma) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }

  Vector feed_forward(const std::string& layer, const std::string& suffix, const Vector& x) const {
    Vector gate = product(layer + "ffn_gate" + suffix, x);
    const Vector up = product(layer + "ffn_up" + suffix, x);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] = activate(gate[i]) * up[i];
    return product(layer + "ffn_down" + suffix, gate);
  }

  // The experts of largest probability, each times its own.
  Vector mix(const std::string& layer, const Vector& x) const {
    Vector weights = product(layer + "ffn_gate_inp", x);
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight);
    std::vector<size_t> order;
    for (size_t e = 0; e < weights.size(); ++e) order.push_back(e);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return weights[a] > weights[b]; });
    order.resize(static_cast<size_t>(o.num_active));
    if (o.normalises) {
      sum = 0;
      for (const size_t e : order) sum += weights[e];
    }
    Vector out(x.size(), 0.0);
    const auto add_part = [&](const std::string& suffix, double weight) {
      const Vector part = feed_forward(layer, suffix, x);
      for (size_t i = 0; i < out.size(); ++i) out[i] += weight * part[i];
    };
    for (const size_t e : order) add_part("." + std::to_string(e), weights[e] / sum);
    if (o.shared_length == 0) return out;
    double weight = 1;
    if (o.has_shared_gate) {
      weight = 1 / (1 + std::exp(-product(layer + "ffn_gate_inp_shexp", x)[0]));
    }
    add_part("_shexp", weight);
    return out;
  }

  void add(Vector& x, Vector delta, const std::string& post_norm) const {
    if (is_gemma) delta = norm(post_norm, delta);
    for (size_t i = 0; i < x.size(); ++i) x[i] += delta[i];
  }

  void layer(int64_t index, std::vector<Vector>& rows) const {
    const std::string name = "blk." + std::to_string(index) + ".";
    const bool has_window = o.window > 0 && (!is_gemma || (index + 1) % 6 != 0);
    const Vector& inv_freq = is_gemma && has_window ? options.inv_freq_window : options.inv_freq;
    std::vector<Vector> keys;
    std::vector<Vector> values;
    for (size_t position = 0; position < rows.size(); ++position) {
      Vector& x = rows[position];
      const Vector h = norm(name + "attn_norm", x);
      Vector q = product(name + "attn_q", h);
      Vector k = product(name + "attn_k", h);
      finish_heads(q, name + "attn_q_norm", static_cast<double>(position), inv_freq);
      finish_heads(k, name + "attn_k_norm", static_cast<double>(position), inv_freq);
      keys.push_back(k);
      values.push_back(product(name + "attn_v", h));
      const Vector attended = attend(q, keys, values, has_window ? o.window : 0);
      add(x, product(name + "attn_output", attended), name + "post_attention_norm");

      const Vector m = norm(name + "ffn_norm", x);
      const bool has_experts = o.num_experts > 0 && index >= o.num_dense_layers;
      add(x, has_experts ? mix(name, m) : feed_forward(name, "", m), name + "post_ffw_norm");
    }
  }
};

}  // namespace

std::vector<double> plain_frequencies(double base, int64_t dims) {
  std::vector<double> out;
  for (int64_t i = 0; i < dims / 2; ++i) {
    out.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims)));
  }
  return out;
}

std::vector<std::vector<double>> direct_logits(const TinyModel& model, const DirectOptions& options,
                                               std::span<const TokenId> tokens) {
  const Direct direct{model, options};
  const TinyOptions& o = model.options;
  std::vector<Vector> rows;
  const std::vector<float>& table = model.tensors.at("token_embd.weight").values;
  const double scale = direct.is_gemma ? std::sqrt(static_cast<double>(o.embedding)) : 1;
  for (const TokenId id : tokens) {
    Vector& row = rows.emplace_back();
    for (int64_t i = 0; i < o.embedding; ++i) {
      row.push_back(scale * static_cast<double>(table[static_cast<size_t>(id * o.embedding + i)]));
    }
  }
  for (int64_t i = 0; i < o.num_layers; ++i) direct.layer(i, rows);
  std::vector<Vector> logits;
  for (const Vector& row : rows) {
    logits.push_back(
        direct.product(o.has_own_head ? "output" : "token_embd", direct.norm("output_norm", row)));
    if (o.final_soft_cap <= 0) continue;
    for (double& value : logits.back()) {
      value = o.final_soft_cap * std::tanh(value / o.final_soft_cap);
    }
  }
  return logits;
}

}  // namespace headrace::test
