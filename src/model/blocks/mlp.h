// Feed-forward blocks: down(activation(up(x))), and the gated one (arXiv:2002.05202),
// down(activation(gate(x)) * up(x)).
#pragma once

#include "model/blocks/activations.h"
#include "model/blocks/linear.h"

namespace headrace {

struct GatedMlp {
  Linear gate;  ///< [feed_forward, embedding]
  Linear up;    ///< [feed_forward, embedding]
  Linear down;  ///< [embedding, feed_forward]
  Activation activation = Activation::silu;
  float scale = 1.0F;  ///< the block's result is multiplied by it

  /// x and out: [rows, embedding]; add_to: likewise, += out, or without data.
  void apply(Backend& backend, const LinearInput& x, Activations& a, const Tensor& out,
             const Tensor& add_to) const;
};

struct Mlp {
  Linear up;    ///< [feed_forward, embedding]
  Linear down;  ///< [embedding, feed_forward]
  Activation activation = Activation::gelu;
  float scale = 1.0F;  ///< the block's result is multiplied by it

  /// As GatedMlp::apply.
  void apply(Backend& backend, const LinearInput& x, Activations& a, const Tensor& out,
             const Tensor& add_to) const;
};

}  // namespace headrace
