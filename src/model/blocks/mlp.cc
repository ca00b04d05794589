// See mlp.h.
#include "model/blocks/mlp.h"

#include <array>

namespace headrace {

void GatedMlp::apply(Backend& backend, const LinearInput& x, Activations& a, const Tensor& out,
                     const Tensor& add_to) const {
  const Tensor gated = first_cols(a.gate.view(out.rows), gate.weight->rows());
  const Tensor upped = first_cols(a.up.view(out.rows), up.weight->rows());
  const std::array tasks = {gate.task(gated), up.task(upped)};
  backend.linear(x, tasks);
  LinearInput hidden = gated;
  hidden.up = upped;
  hidden.activation = activation;
  backend.linear(hidden, down.task(out, add_to, scale));
}

void Mlp::apply(Backend& backend, const LinearInput& x, Activations& a, const Tensor& out,
                const Tensor& add_to) const {
  const Tensor upped = first_cols(a.up.view(out.rows), up.weight->rows());
  backend.linear(x, up.task(upped));
  LinearInput hidden = upped;
  hidden.activates = true;
  hidden.activation = activation;
  backend.linear(hidden, down.task(out, add_to, scale));
}

}  // namespace headrace
