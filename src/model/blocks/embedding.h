// The two ends of a decoder: token ids to vectors, vectors to logits.
#pragma once

#include <memory>
#include <span>

#include "model/blocks/activations.h"
#include "model/blocks/linear.h"
#include "model/blocks/norm.h"

namespace headrace {

struct Embedding {
  std::unique_ptr<Matrix> table;  ///< [vocab, embedding]
  float scale = 1.0F;

  /// out [rows, embedding] = scale * the rows of the table.
  void apply(Backend& backend, std::span<const TokenId> tokens, const Tensor& out) const {
    backend.embed(*table, tokens, scale, out);
  }
};

struct OutputHead {
  Norm norm;
  Linear own;                    ///< empty weight: tied
  const Matrix* tied = nullptr;  ///< the embedding's table
  float soft_cap = 0;            ///< 0: none
  float scale = 1.0F;            ///< logits are multiplied by it, before the cap

  /// Logits [rows.size(), vocab] of the wanted rows of x [.., embedding], in a.logits.
  /// num_top: see StepInput.
  Tensor apply(Backend& backend, const Tensor& x, std::span<const int32_t> rows, int32_t num_top,
               Activations& a) const;
};

}  // namespace headrace
