// RMS normalisation with a learned weight (arXiv:1910.07467).
#pragma once

#include "backend/backend.h"

namespace headrace {

struct RmsNorm {
  Buffer weight;  ///< [1, features]
  float eps = 0;

  /// out = x / rms(x) * weight, row by row; x and out [rows, features] may be the same.
  void apply(Backend& backend, const Tensor& x, const Tensor& out) const {
    backend.rms_norm(x, weight.view(), eps, out);
  }

  /// The same over each head of a row, in place; the weight is [1, head_dim].
  void apply_to_heads(Backend& backend, const Tensor& x) const {
    const Tensor w = weight.view();
    backend.head_rms_norm(x, w.cols, w, eps);
  }
};

}  // namespace headrace
