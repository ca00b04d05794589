// RMS normalisation with a learned weight (arXiv:1910.07467), and layer normalisation with a weight
// and an optional bias (arXiv:1607.06450).
#pragma once

#include <variant>

#include "backend/backend.h"

namespace headrace {

struct RmsNorm {
  Buffer weight;  ///< [1, features]
  float eps = 0;

  /// x += delta / rms(delta) * weight, row by row; changes delta.
  void add_to(Backend& backend, const Tensor& x, const Tensor& delta) const {
    backend.add_rms_norm(x, delta, weight.view(), eps);
  }

  /// x / rms(x) * weight as the input of products.
  LinearInput input(const Tensor& x) const {
    LinearInput out = x;
    out.norm = weight.view();
    out.norm_eps = eps;
    return out;
  }
};

struct LayerNorm {
  Buffer weight;  ///< [1, features]
  Buffer bias;    ///< [1, features], or empty
  float eps = 0;

  /// (x - mean) / sqrt(variance + eps) * weight + bias, row by row; x and out may be the same.
  void apply(Backend& backend, const Tensor& x, const Tensor& out) const {
    backend.layer_norm(x, weight.view(), bias.view(), eps, out);
  }

  /// The same as the input of products.
  LinearInput input(const Tensor& x) const {
    LinearInput out = x;
    out.norm = weight.view();
    out.norm_bias = bias.view();
    out.centers = true;
    out.norm_eps = eps;
    return out;
  }
};

/// A layer normalisation over each head, with weights of its own and without bias.
struct HeadLayerNorm {
  Buffer weight;  ///< [1, heads * head_dim]
  float eps = 0;
};

using Norm = std::variant<RmsNorm, LayerNorm>;

/// x becomes its norm, row by row.
inline void apply_norm(Backend& backend, const Norm& norm, const Tensor& x) {
  if (const auto* layer = std::get_if<LayerNorm>(&norm)) return layer->apply(backend, x, x);
  const auto& rms = std::get<RmsNorm>(norm);
  backend.rms_norm(x, rms.weight.view(), rms.eps, x);
}

/// The normed rows as the input of products.
inline LinearInput normed_input(const Norm& norm, const Tensor& x) {
  return std::visit([&](const auto& one) { return one.input(x); }, norm);
}

}  // namespace headrace
