// RMS normalisation with a learned weight (arXiv:1910.07467).
#pragma once

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

}  // namespace headrace
