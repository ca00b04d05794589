// A weight matrix with its optional bias, as blocks hold it.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace headrace {

struct Linear {
  std::unique_ptr<Matrix> weight;  ///< [out, in]
  Buffer bias;                     ///< [1, out], or empty

  /// add_to, scale: see LinearTask.
  LinearTask task(const Tensor& out, const Tensor& add_to = {}, float scale = 1.0F) const {
    return {weight.get(), bias.view(), out, add_to, scale};
  }
};

}  // namespace headrace
