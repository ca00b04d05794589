// The two ends of a decoder: token ids to vectors, vectors to logits.
#pragma once

#include <memory>
#include <span>

#include "model/blocks/activations.h"
#include "model/blocks/linear.h"
#include "model/blocks/norm.h"
#include "model/model.h"

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

  /// What the step wants of x [.., embedding], the last layer's output: a.embedded, and logits
  /// [logit_rows.size(), vocab] in a.logits, which are returned. Overwrites a.delta.
  Tensor apply(Backend& backend, const Tensor& x, const StepInput& step, Activations& a) const;
};

}  // namespace headrace
