// A weight matrix with its optional bias, as blocks hold it.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace headrace {

struct Linear {
  std::unique_ptr<Matrix> weight;  ///< [out, in]
  Buffer bias;                     ///< [1, out], or empty
  // What adapters add to it; empty where none does.
  std::vector<LowRank> adapters{};                         ///< by their index
  std::vector<std::unique_ptr<Matrix>> adapter_weights{};  ///< which these are made of
  const AdapterStep* adapter_step = nullptr;               ///< of the model that it is part of

  /// add_to, scale: see LinearTask.
  LinearTask task(const Tensor& out, const Tensor& add_to = {}, float scale = 1.0F) const {
    return {weight.get(), bias.view(), out, add_to, scale, adapters, adapter_step};
  }
};

}  // namespace headrace
