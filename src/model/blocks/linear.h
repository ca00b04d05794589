// A weight matrix with its optional bias, as blocks hold it.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace headrace {

struct Linear {
  std::unique_ptr<Matrix> weight;  ///< [out, in]
  Buffer bias;                     ///< [1, out], or empty

  LinearTask task(const Tensor& out) const { return {weight.get(), bias.view(), out}; }
  /// The same, and x += out.
  LinearTask task(const Tensor& out, const Tensor& x) const {
    return {weight.get(), bias.view(), out, x};
  }
};

}  // namespace headrace
